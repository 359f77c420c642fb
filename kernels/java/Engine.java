// SPDX-License-Identifier: Apache-2.0
package cloche;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import jdk.jshell.Diag;
import jdk.jshell.EvalException;
import jdk.jshell.JShell;
import jdk.jshell.JShellException;
import jdk.jshell.Snippet;
import jdk.jshell.Snippet.SubKind;
import jdk.jshell.SnippetEvent;
import jdk.jshell.SourceCodeAnalysis;
import jdk.jshell.SourceCodeAnalysis.CompletionInfo;
import jdk.jshell.UnresolvedReferenceException;
import jdk.jshell.VarSnippet;

/** One JShell session: cells cut into snippets, run one after the other, their values and faults. */
final class Engine {
    private static final String[] IMPORTS = {
        "java.io.*", "java.math.*", "java.net.*", "java.nio.file.*", "java.util.*", "java.util.concurrent.*",
        "java.util.function.*", "java.util.prefs.*", "java.util.regex.*", "java.util.stream.*",
    };

    /** What a cell came to: a value with its text as JShell made it, a fault or neither. */
    record Outcome(Object value, String text, Fault fault) {
        static final Outcome NOTHING = new Outcome(null, null, null);
    }

    record Fault(String name, String value, String traceback) {}

    private final JShell shell;
    private final SourceCodeAnalysis analysis;
    private final Control control;

    Engine() {
        Control.Provider provider = new Control.Provider();
        control = provider.control;
        shell = JShell.builder().executionEngine(provider, null).compilerOptions("-Xlint:none").build();
        analysis = shell.sourceCodeAnalysis();
        shell.addToClasspath(System.getProperty("java.class.path"));
        for (String name : IMPORTS) shell.eval("import " + name + ";");
        shell.eval("import static cloche.Display.*;");
    }

    Outcome run(String code) {
        Outcome last = Outcome.NOTHING;
        control.reset();
        for (String rest = code; !rest.isBlank() && !control.isStopped();) {
            CompletionInfo info = analysis.analyzeCompletion(rest);
            if (info.completeness() == SourceCodeAnalysis.Completeness.EMPTY) return last;
            if (!info.completeness().isComplete() && info.source() == null) return incomplete(rest);
            String source = info.source() == null ? rest : info.source();
            last = runSnippet(source);
            if (last.fault() != null) return last;
            rest = info.source() == null ? "" : info.remaining();
        }
        return last;
    }

    /** The compiler tells best what is missing. */
    private Outcome incomplete(String rest) {
        Outcome outcome = runSnippet(rest);
        if (outcome.fault() != null) return outcome;
        return new Outcome(null, null, new Fault("IncompleteSourceException", "The code ends too early", rest));
    }

    private Outcome runSnippet(String source) {
        Outcome outcome = Outcome.NOTHING;
        for (SnippetEvent event : shell.eval(source)) {
            if (event.causeSnippet() != null) continue;
            if (event.exception() != null) return new Outcome(null, null, faultOf(event.exception()));
            if (event.status() == Snippet.Status.REJECTED) {
                return new Outcome(null, null, rejection(event.snippet(), source));
            }
            outcome = valueOf(event);
        }
        return outcome;
    }

    private Outcome valueOf(SnippetEvent event) {
        SubKind kind = event.snippet().subKind();
        boolean hasValue = kind == SubKind.TEMP_VAR_EXPRESSION_SUBKIND || kind == SubKind.VAR_VALUE_SUBKIND
                || kind == SubKind.OTHER_EXPRESSION_SUBKIND;
        if (!hasValue) return Outcome.NOTHING;
        Optional<VarSnippet> variable = variable(event.snippet());
        if (variable.isEmpty()) {
            return "null".equals(event.value()) ? Outcome.NOTHING : new Outcome(event.value(), event.value(), null);
        }
        shell.varValue(variable.get());
        return new Outcome(control.takeValue(), event.value(), null);
    }

    private Optional<VarSnippet> variable(Snippet snippet) {
        if (snippet instanceof VarSnippet found) return Optional.of(found);
        String name = snippet.source().strip().replaceAll("[;\\s]+$", "");
        return shell.variables().filter(found -> found.name().equals(name)).findFirst();
    }

    // ---- faults --------------------------------------------------------------------------------

    private Fault rejection(Snippet snippet, String source) {
        List<String> messages = new ArrayList<>();
        StringBuilder shown = new StringBuilder();
        shell.diagnostics(snippet).filter(Diag::isError).forEach(diag -> {
            String message = diag.getMessage(Locale.ENGLISH).strip();
            messages.add(message);
            shown.append(frame(source, diag)).append(message).append("\n\n");
        });
        if (messages.isEmpty()) messages.add("The snippet was rejected");
        return new Fault("CompilationException", String.join("\n", messages), shown.toString().stripTrailing());
    }

    /** The line of the fault with a mark below. */
    private static String frame(String source, Diag diag) {
        int at = (int) Math.max(0, Math.min(diag.getPosition(), source.length()));
        int start = source.lastIndexOf('\n', at - 1) + 1;
        int end = source.indexOf('\n', at) < 0 ? source.length() : source.indexOf('\n', at);
        int number = (int) source.substring(0, start).chars().filter(c -> c == '\n').count() + 1;
        return "line " + number + ":\n" + source.substring(start, end) + "\n" + " ".repeat(at - start) + "^\n";
    }

    private Fault faultOf(JShellException thrown) {
        if (thrown instanceof UnresolvedReferenceException unresolved) {
            String names = String.join(", ", shell.unresolvedDependencies(unresolved.getSnippet()).toList());
            return new Fault("UnresolvedReferenceException", "Not declared yet: " + names, trace(thrown));
        }
        String message = thrown.getMessage() == null ? "" : thrown.getMessage();
        return new Fault(nameOf(thrown), message, trace(thrown));
    }

    private static String nameOf(Throwable thrown) {
        return thrown instanceof EvalException found ? found.getExceptionClassName() : thrown.getClass().getName();
    }

    private static String trace(Throwable thrown) {
        StringBuilder out = new StringBuilder();
        for (Throwable each = thrown; each != null; each = each.getCause()) {
            out.append(out.isEmpty() ? "" : "Caused by: ").append(nameOf(each));
            if (each.getMessage() != null) out.append(": ").append(each.getMessage());
            out.append('\n');
            for (StackTraceElement frame : each.getStackTrace()) {
                if (frame.getMethodName().startsWith("do_it$")) {
                    out.append("    at (").append(frame.getFileName()).append(':');
                    out.append(frame.getLineNumber()).append(")\n");
                    break;
                }
                out.append("    at ").append(frame).append('\n');
            }
        }
        return out.toString().stripTrailing();
    }

    // ---- interrupts ----------------------------------------------------------------------------

    /** Safe at any time of a cell; may have to be repeated, as a snippet between two states misses it. */
    void interrupt() {
        shell.stop();
    }

    void abandon() {
        control.abandon();
    }
}
