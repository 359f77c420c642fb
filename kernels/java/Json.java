// SPDX-License-Identifier: Apache-2.0
package cloche;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * JSON for the protocol: objects as maps, arrays as lists, numbers as Long or Double. Written text is
 * ASCII, so any string passes, lone surrogates included.
 */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    static Object parse(String text) {
        Json json = new Json(text);
        Object value = json.value();
        json.skipBlanks();
        if (json.at != text.length()) throw json.failure("end");
        return value;
    }

    private IllegalArgumentException failure(String wanted) {
        return new IllegalArgumentException("JSON: no " + wanted + " at " + at);
    }

    private void skipBlanks() {
        while (at < text.length() && text.charAt(at) <= ' ') at++;
    }

    private boolean take(char wanted) {
        skipBlanks();
        if (at >= text.length() || text.charAt(at) != wanted) return false;
        at++;
        return true;
    }

    private Object value() {
        if (take('"')) return string();
        if (take('{')) return object();
        if (take('[')) return array();
        if (text.startsWith("true", at)) return word("true", true);
        if (text.startsWith("false", at)) return word("false", false);
        if (text.startsWith("null", at)) return word("null", null);
        return number();
    }

    private Object word(String word, Object value) {
        at += word.length();
        return value;
    }

    private Object number() {
        int from = at;
        while (at < text.length() && "+-.0123456789eE".indexOf(text.charAt(at)) >= 0) at++;
        String token = text.substring(from, at);
        if (token.isEmpty()) throw failure("value");
        boolean isWhole = token.chars().allMatch(c -> c == '-' || (c >= '0' && c <= '9'));
        return isWhole ? (Object) Long.valueOf(token) : (Object) Double.valueOf(token);
    }

    private Map<String, Object> object() {
        Map<String, Object> object = new LinkedHashMap<>();
        if (take('}')) return object;
        do {
            if (!take('"')) throw failure("name");
            String name = string();
            if (!take(':')) throw failure("colon");
            object.put(name, value());
        } while (take(','));
        if (!take('}')) throw failure("end of the object");
        return object;
    }

    private List<Object> array() {
        List<Object> array = new ArrayList<>();
        if (take(']')) return array;
        do array.add(value()); while (take(','));
        if (!take(']')) throw failure("end of the array");
        return array;
    }

    private String string() {
        StringBuilder out = new StringBuilder();
        while (at < text.length()) {
            char c = text.charAt(at++);
            if (c == '"') return out.toString();
            out.append(c == '\\' ? escaped() : c);
        }
        throw failure("end of the string");
    }

    private char escaped() {
        char c = text.charAt(at++);
        switch (c) {
            case 'n': return '\n';
            case 'r': return '\r';
            case 't': return '\t';
            case 'b': return '\b';
            case 'f': return '\f';
            case 'u':
                at += 4;
                return (char) Integer.parseInt(text.substring(at - 4, at), 16);
            default: return c;
        }
    }

    /** Writes an object of alternating names and values. */
    static String object(Object... pairs) {
        StringBuilder out = new StringBuilder("{");
        for (int i = 0; i < pairs.length; i += 2) {
            if (i > 0) out.append(',');
            writeString(out, (String) pairs[i]);
            out.append(':');
            write(out, pairs[i + 1]);
        }
        return out.append('}').toString();
    }

    private static void write(StringBuilder out, Object value) {
        if (value == null || value instanceof Number || value instanceof Boolean) out.append(value);
        else if (value instanceof Map<?, ?> map) writeMap(out, map);
        else writeString(out, value.toString());
    }

    private static void writeMap(StringBuilder out, Map<?, ?> map) {
        out.append('{');
        String separator = "";
        for (Map.Entry<?, ?> entry : map.entrySet()) {
            out.append(separator);
            writeString(out, (String) entry.getKey());
            out.append(':');
            write(out, entry.getValue());
            separator = ",";
        }
        out.append('}');
    }

    private static void writeString(StringBuilder out, String value) {
        out.append('"');
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c == '"' || c == '\\') out.append('\\').append(c);
            else if (c == '\n') out.append("\\n");
            else if (c >= ' ' && c < 0x7f) out.append(c);
            else out.append("\\u").append(Character.forDigit(c >> 12, 16)).append(Character.forDigit(c >> 8 & 15, 16))
                    .append(Character.forDigit(c >> 4 & 15, 16)).append(Character.forDigit(c & 15, 16));
        }
        out.append('"');
    }
}
