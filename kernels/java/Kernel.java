// SPDX-License-Identifier: Apache-2.0
package cloche;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * The Java kernel (docs/kernel-protocol.md) on JShell.
 *
 * <p>The main thread reads the protocol, so it hears an interrupt while a cell runs on the other. Environment
 * variables are system properties here, and a change of directory sets user.dir: a virtual
 * machine can change neither for real.
 */
public final class Kernel {
    private static final int INSIST_MS = 50;
    private static final int ABANDON_AT = 20;
    private static final String[] REHEARSAL = {
        "int x = 1 + 1; x", "String s = \"a\"; System.out.println(s); s.length()",
        "for (int i = 0; i < 3; i++) System.out.print(i);",
        "import java.util.*; List<Integer> l = List.of(3, 1, 2); l.stream().sorted().map(n -> n * 2).toList()",
        "record P(int a, String b) {} new P(1, \"x\")", "int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); } f(5)",
        "class A { int v = 3; int twice() { return v * 2; } } new A().twice()", "throw new RuntimeException(\"x\")",
        "int y = \"no\";", "System.getProperty(\"user.dir\")",
        "Map<String, Integer> m = new HashMap<>(); m.put(\"k\", 1); m", "String.format(\"%d %s\", 1, \"a\")",
    };

    private final Wire wire;
    private final BlockingQueue<Map<String, Object>> orders = new LinkedBlockingQueue<>();
    private volatile Engine engine;
    private volatile long accepted = -1;
    private volatile long running = -1;
    private volatile long interrupted = -1;
    private volatile long finished = -1;
    private long count;

    private Kernel(Wire wire) {
        this.wire = wire;
    }

    public static void main(String[] args) {
        if (args.length > 0 && args[0].equals("--rehearse")) {
            rehearse();
            return;
        }
        Kernel kernel = new Kernel(new Wire());
        Thread cells = new Thread(kernel::serve, "cells");
        cells.start();
        kernel.listen();
    }

    /** Runs what makes the virtual machine load what cells need, for the class archive. */
    private static void rehearse() {
        Engine engine = new Engine();
        for (String cell : REHEARSAL) engine.run(cell);
        Json.parse(Json.object("op", "run", "id", 1, "env", Map.of("a", "b")));
        System.exit(0);
    }

    // ---- the reading thread --------------------------------------------------------------------

    private void listen() {
        sun.misc.Signal.handle(new sun.misc.Signal("INT"), signal -> { });
        try {
            for (String line = wire.receive(); line != null; line = wire.receive()) {
                if (!line.isBlank()) take(asMap(Json.parse(line)));
            }
        } catch (IOException error) {
            Runtime.getRuntime().halt(1);
        }
        Runtime.getRuntime().halt(0);
    }

    private void take(Map<String, Object> order) {
        if ("interrupt".equals(order.get("op"))) {
            interrupt(order.get("id"));
            return;
        }
        if ("renew".equals(order.get("op"))) {
            Reseed.renew();
            return;
        }
        if (order.get("id") instanceof Long id) accepted = id;
        orders.add(order);
    }

    /** Tells the code to stop until it does; code that does not listen is left behind after a while. */
    private void interrupt(Object id) {
        if (!(id instanceof Long wanted) || wanted != accepted || wanted == interrupted || wanted == finished) return;
        interrupted = wanted;
        ProcessHandle.current().descendants().forEach(ProcessHandle::destroy);
        Thread persistence = new Thread(() -> insist(wanted), "interrupt");
        persistence.setDaemon(true);
        persistence.start();
    }

    private void insist(long id) {
        try {
            for (int tries = 0; finished != id; Thread.sleep(INSIST_MS)) {
                if (running != id) continue;
                engine.interrupt();
                if (++tries >= ABANDON_AT) engine.abandon();
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> asMap(Object value) {
        return value == null ? Map.of() : (Map<String, Object>) value;
    }

    // ---- the thread of the cells ---------------------------------------------------------------

    private void serve() {
        System.setOut(wire.stream("stdout"));
        System.setErr(wire.stream("stderr"));
        Display.connect(wire);
        wire.send("ev", "ready", "pid", ProcessHandle.current().pid(), "version", System.getProperty("java.version"),
                "interrupt", "message");
        engine = new Engine();
        try {
            for (;;) obey(orders.take());
        } catch (InterruptedException error) {
            Runtime.getRuntime().halt(1);
        }
    }

    private void obey(Map<String, Object> order) {
        switch (String.valueOf(order.get("op"))) {
            case "run" -> run(order);
            case "env" -> {
                setProperties(asMap(order.get("set")));
                if (Boolean.TRUE.equals(order.get("renew"))) Reseed.renew();
            }
            case "cd" -> changeDirectory((String) order.get("path"));
            default -> { }
        }
    }

    private void run(Map<String, Object> order) {
        long id = (Long) order.get("id");
        String code = (String) order.get("code");
        wire.begin(id);
        wire.send("ev", "count", "id", id, "n", count + 1);
        if (!code.isBlank()) count++;
        Map<String, Object> before = setProperties(asMap(order.get("env")));
        running = id;
        Engine.Outcome outcome = interrupted == id ? Engine.Outcome.NOTHING : outcome(code);
        running = -1;
        String status = interrupted == id ? "aborted" : tell(outcome);
        setProperties(before);
        finished = id;
        wire.end(status);
    }

    private Engine.Outcome outcome(String code) {
        try {
            return engine.run(code);
        } catch (RuntimeException | StackOverflowError error) {
            return new Engine.Outcome(null, null, fault(error, ""));
        }
    }

    private String tell(Engine.Outcome outcome) {
        Engine.Fault fault = outcome.fault();
        if (fault == null) fault = show(outcome);
        if (fault == null) return "ok";
        wire.event("error", "name", fault.name(), "value", fault.value(), "traceback", fault.traceback());
        return "error";
    }

    /** The value's toString is the user's code and may fail. */
    private Engine.Fault show(Engine.Outcome outcome) {
        if (outcome.value() == null) return null;
        try {
            wire.event("display", "main", true, "data", Display.bundle(outcome.value(), outcome.text()));
            return null;
        } catch (RuntimeException | StackOverflowError error) {
            return fault(error, "in toString() of the value");
        }
    }

    private static Engine.Fault fault(Throwable error, String trace) {
        return new Engine.Fault(error.getClass().getName(), String.valueOf(error.getMessage()), trace);
    }

    // ---- surroundings --------------------------------------------------------------------------

    /** Sets properties (null removes) and returns what undoes it. */
    private static Map<String, Object> setProperties(Map<String, Object> settings) {
        Map<String, Object> before = new LinkedHashMap<>();
        settings.forEach((name, value) -> {
            if (name.isEmpty()) return;
            before.put(name, System.getProperty(name));
            if (value == null) System.clearProperty(name);
            else System.setProperty(name, (String) value);
        });
        return before;
    }

    private void changeDirectory(String path) {
        Path target = Path.of(System.getProperty("user.dir")).resolve(path);
        String reason = null;
        if (!Files.exists(target)) reason = "No such file or directory";
        else if (!Files.isDirectory(target)) reason = "Not a directory";
        if (reason == null) {
            System.setProperty("user.dir", target.toString());
            wire.send("ev", "cd", "ok", true);
        } else {
            wire.send("ev", "cd", "ok", false, "reason", reason);
        }
    }
}
