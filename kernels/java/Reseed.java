// SPDX-License-Identifier: Apache-2.0
package cloche;

import java.lang.reflect.Field;
import java.security.SecureRandom;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Gives new seeds to the generators of the class library after a box was restored from another one's memory: both
 * would draw the same numbers otherwise. Secure generators read the system's random numbers and need no seed;
 * generators that a cell made are left alone.
 */
final class Reseed {
    /** Seeds of generators that are made without one. */
    private static final String[][] SEEDERS = {
        {"java.util.Random", "seedUniquifier"}, {"java.util.SplittableRandom", "defaultGen"},
        {"java.util.concurrent.ThreadLocalRandom", "seeder"},
        {"jdk.random.L32X64MixRandom", "defaultGen"}, {"jdk.random.L64X128MixRandom", "defaultGen"},
        {"jdk.random.L64X128StarStarRandom", "defaultGen"}, {"jdk.random.L64X256MixRandom", "defaultGen"},
        {"jdk.random.L64X1024MixRandom", "defaultGen"}, {"jdk.random.L128X128MixRandom", "defaultGen"},
        {"jdk.random.L128X256MixRandom", "defaultGen"}, {"jdk.random.L128X1024MixRandom", "defaultGen"},
        {"jdk.random.Xoroshiro128PlusPlus", "defaultGen"}, {"jdk.random.Xoshiro256PlusPlus", "defaultGen"},
    };

    /** Generators behind Math.random and Collections.shuffle. */
    private static final String[][] SHARED = {
        {"java.lang.Math$RandomNumberGeneratorHolder", "randomNumberGenerator"},
        {"java.lang.StrictMath$RandomNumberGeneratorHolder", "randomNumberGenerator"}, {"java.util.Collections", "r"},
    };

    private Reseed() {}

    /** Any thread, also while a cell runs. */
    static void renew() {
        SecureRandom source = new SecureRandom();
        for (String[] name : SEEDERS) {
            if (held(name) instanceof AtomicLong seed) seed.set(source.nextLong());
        }
        for (String[] name : SHARED) {
            if (held(name) instanceof Random generator) generator.setSeed(source.nextLong());
        }
        renewThreads();
    }

    /** A thread without a probe draws a new seed at its next number. */
    private static void renewThreads() {
        try {
            Field probe = Thread.class.getDeclaredField("threadLocalRandomProbe");
            probe.setAccessible(true);
            for (Thread thread : Thread.getAllStackTraces().keySet()) probe.setInt(thread, 0);
        } catch (ReflectiveOperationException | RuntimeException error) {
            return;
        }
    }

    /** What a static field holds; null where this release has no such field. */
    private static Object held(String[] name) {
        try {
            Field field = Class.forName(name[0]).getDeclaredField(name[1]);
            field.setAccessible(true);
            return field.get(null);
        } catch (ReflectiveOperationException | RuntimeException error) {
            return null;
        }
    }
}
