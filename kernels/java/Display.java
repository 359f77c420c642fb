// SPDX-License-Identifier: Apache-2.0
package cloche;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Map;

/** How values look, and what cells call to show something: display(value), display(data, mime). */
public final class Display {
    private static Wire wire;

    private Display() {}

    static void connect(Wire to) {
        wire = to;
    }

    /** Shows a value at once. */
    public static void display(Object value) {
        if (value != null) wire.event("display", "main", false, "data", bundle(value, String.valueOf(value)));
    }

    /** Shows data of a MIME type: text as it is, bytes as base64. */
    public static void display(Object data, String mime) {
        Object shown = data instanceof byte[] bytes ? Base64.getEncoder().encodeToString(bytes) : String.valueOf(data);
        wire.event("display", "main", false, "data", Map.of(mime, shown));
    }

    /**
     * Text for everything, a picture for images. JShell has called toString already and shows arrays well, but quotes
     * strings and characters; it has no text when toString failed, and calling it again tells why.
     */
    static Map<String, Object> bundle(Object value, String text) {
        Map<String, Object> data = new LinkedHashMap<>();
        boolean isQuoted = value instanceof String || value instanceof Character;
        data.put("text/plain", isQuoted || text == null ? String.valueOf(value) : text);
        if (isImage(value)) addImage(data, value);
        return data;
    }

    /** By name first: the desktop module is not loaded for anything else. */
    private static boolean isImage(Object value) {
        return value.getClass().getName().equals("java.awt.image.BufferedImage");
    }

    private static void addImage(Map<String, Object> data, Object value) {
        try {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            javax.imageio.ImageIO.write((java.awt.image.BufferedImage) value, "png", out);
            data.put("image/png", Base64.getEncoder().encodeToString(out.toByteArray()));
        } catch (IOException error) {
            data.put("text/plain", data.get("text/plain") + " (" + error.getMessage() + ")");
        }
    }
}
