// SPDX-License-Identifier: Apache-2.0
package cloche;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import jdk.jshell.execution.LocalExecutionControl;
import jdk.jshell.spi.ExecutionControl;
import jdk.jshell.spi.ExecutionControlProvider;
import jdk.jshell.spi.ExecutionEnv;

/**
 * Runs snippets in this process, keeps the object behind a snippet's value, and gives up on code that
 * no interrupt can end: its thread is left behind and the session goes on.
 */
final class Control extends LocalExecutionControl {
    private volatile CountDownLatch present;
    private volatile boolean isAbandoned;
    private volatile boolean isStopped;
    private Object value;

    /** The provider JShell asks for its execution engine. */
    static final class Provider implements ExecutionControlProvider {
        final Control control = new Control();

        @Override
        public String name() {
            return "cloche";
        }

        @Override
        public ExecutionControl generate(ExecutionEnv env, Map<String, String> parameters) {
            return control;
        }
    }

    @Override
    protected String invoke(Method method) throws Exception {
        CountDownLatch done = new CountDownLatch(1);
        Object[] outcome = new Object[2];
        isAbandoned = false;
        present = done;
        if (isStopped) throw new StoppedException();
        Thread thread = new Thread(() -> {
            try {
                outcome[0] = super.invoke(method);
            } catch (Throwable error) {
                outcome[1] = error;
            } finally {
                done.countDown();
            }
        }, "cell");
        thread.setDaemon(true);
        thread.start();
        done.await();
        present = null;
        if (isAbandoned) throw new StoppedException();
        if (outcome[1] instanceof Exception) throw (Exception) outcome[1];
        if (outcome[1] instanceof Error) throw (Error) outcome[1];
        return (String) outcome[0];
    }

    /** A new cell: what was stopped before does not matter any more. */
    void reset() {
        isStopped = false;
    }

    /** No further snippet of the cell starts, and the present one is told to stop. */
    @Override
    public void stop() throws EngineTerminationException, InternalException {
        isStopped = true;
        super.stop();
    }

    boolean isStopped() {
        return isStopped;
    }

    /** Lets the session go on without the code that runs. */
    void abandon() {
        CountDownLatch waiting = present;
        if (waiting == null) return;
        isAbandoned = true;
        waiting.countDown();
    }

    @Override
    public String varValue(String className, String name) {
        value = null;
        try {
            Field field = findClass(className).getDeclaredField(name);
            field.setAccessible(true);
            value = field.get(null);
        } catch (ReflectiveOperationException error) {
            value = null;
        }
        return valueString(value);
    }

    /** The object that the last varValue call found. */
    Object takeValue() {
        Object taken = value;
        value = null;
        return taken;
    }
}
