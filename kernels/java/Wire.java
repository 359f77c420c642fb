// SPDX-License-Identifier: Apache-2.0
package cloche;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.Locale;

/**
 * The protocol's descriptor, and the streams that user code prints to.
 *
 * <p>Each call of a print method is one event; println is two, the text and the line end. Before an event,
 * bytes that child processes left in the pipes are announced by a drain, which keeps the order.
 */
final class Wire {
    private static final int PROTOCOL = 3;

    private final FileOutputStream out;
    private final BufferedReader in;
    private final FileInputStream[] pipes = {
        new FileInputStream(FileDescriptor.out), new FileInputStream(FileDescriptor.err),
    };
    private Long run;

    Wire() {
        FileDescriptor descriptor = descriptor(PROTOCOL);
        out = new FileOutputStream(descriptor);
        in = new BufferedReader(new InputStreamReader(new FileInputStream(descriptor), StandardCharsets.UTF_8));
    }

    /** Java opens no descriptor by number, so one is made; the launcher opens java.io for it. */
    private static FileDescriptor descriptor(int number) {
        try {
            FileDescriptor descriptor = new FileDescriptor();
            Field field = FileDescriptor.class.getDeclaredField("fd");
            field.setAccessible(true);
            field.setInt(descriptor, number);
            return descriptor;
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    /** The next line, or null at the end. */
    String receive() throws IOException {
        return in.readLine();
    }

    synchronized void begin(long id) {
        run = id;
    }

    synchronized void end(String status) {
        Long id = run;
        run = null;
        send("ev", "done", "id", id, "status", status);
    }

    synchronized void send(Object... pairs) {
        try {
            out.write((Json.object(pairs) + "\n").getBytes(StandardCharsets.US_ASCII));
        } catch (IOException error) {
            Runtime.getRuntime().halt(1);
        }
    }

    /** An event of the run; between runs nobody listens. */
    synchronized void event(String kind, Object... pairs) {
        if (run == null) return;
        if (hasForeignOutput()) send("ev", "drain", "id", run);
        Object[] all = new Object[pairs.length + 4];
        all[0] = "ev";
        all[1] = kind;
        all[2] = "id";
        all[3] = run;
        System.arraycopy(pairs, 0, all, 4, pairs.length);
        send(all);
    }

    private boolean hasForeignOutput() {
        try {
            return pipes[0].available() > 0 || pipes[1].available() > 0;
        } catch (IOException error) {
            return false;
        }
    }

    /** Bytes become text again; an unfinished character waits for its rest. */
    private final class Events extends OutputStream {
        private final String name;
        private byte[] rest = {};

        Events(String name) {
            this.name = name;
        }

        @Override
        public void write(int one) {
            write(new byte[] {(byte) one}, 0, 1);
        }

        @Override
        public synchronized void write(byte[] bytes, int from, int length) {
            byte[] all = new byte[rest.length + length];
            System.arraycopy(rest, 0, all, 0, rest.length);
            System.arraycopy(bytes, from, all, rest.length, length);
            int whole = all.length - unfinished(all);
            rest = java.util.Arrays.copyOfRange(all, whole, all.length);
            if (whole > 0) event("stream", "name", name, "text", new String(all, 0, whole, StandardCharsets.UTF_8));
        }

        private int unfinished(byte[] bytes) {
            for (int back = 1; back <= Math.min(3, bytes.length); back++) {
                int c = bytes[bytes.length - back] & 0xff;
                if (c >= 0xc2) return (c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2) > back ? back : 0;
                if (c < 0x80) return 0;
            }
            return 0;
        }
    }

    /** Being a subclass, its println is print and newLine; formatted text is one piece. */
    private static final class Printer extends PrintStream {
        Printer(OutputStream out) {
            super(out, true, StandardCharsets.UTF_8);
        }

        @Override
        public PrintStream format(String format, Object... args) {
            print(String.format(format, args));
            return this;
        }

        @Override
        public PrintStream format(Locale locale, String format, Object... args) {
            print(String.format(locale, format, args));
            return this;
        }
    }

    PrintStream stream(String name) {
        return new Printer(new Events(name));
    }
}
