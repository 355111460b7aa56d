import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;

/** Objects that give known answers, throw, do not return, or allocate when they are asked. */
public class Speakers {
    static volatile int calls;
    static volatile boolean isReleased;

    /** Says its number; two neighbours are equal; greater numbers come first. */
    static class Word implements Comparable<Word> {
        final int number;
        int size = 3;
        final byte[] room = new byte[10];

        Word(int number) {
            this.number = number;
        }

        @Override
        public String toString() {
            calls++;
            return "word " + number;
        }

        @Override
        public int hashCode() {
            calls++;
            return number / 2 % 3;
        }

        @Override
        public boolean equals(Object other) {
            calls++;
            return other instanceof Word && ((Word) other).number / 2 == number / 2;
        }

        @Override
        public int compareTo(Word other) {
            calls++;
            return Integer.compare(other.number, number);
        }
    }

    /** Throws whatever it is asked. */
    static class Thrower implements Comparable<Thrower> {
        @Override
        public String toString() {
            throw new IllegalStateException("no text");
        }

        @Override
        public int hashCode() {
            throw new StackOverflowError();
        }

        @Override
        public boolean equals(Object other) {
            throw new IllegalStateException("no equal");
        }

        @Override
        public int compareTo(Thrower other) {
            throw new ClassCastException("no order");
        }
    }

    /** Does not return until all are released. */
    static class Hanger {
        @Override
        public String toString() {
            while (!isReleased) Thread.yield();
            return "free";
        }
    }

    static class Made {
    }

    /** Makes others when it is asked. */
    static class Maker {
        static Object last;

        @Override
        public String toString() {
            for (int i = 0; i < 1000; i++) last = new Made();
            return "made";
        }
    }

    static final List<Object> kept = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        Scanner in = new Scanner(System.in);
        System.out.println("ready");
        while (in.hasNextLine()) {
            String[] words = in.nextLine().split(" ");
            int count = words.length > 1 ? Integer.parseInt(words[1]) : 0;
            String answer = "ok";
            switch (words[0]) {
                case "words": for (int i = 0; i < count; i++) kept.add(new Word(i)); break;
                case "texts": for (int i = 0; i < count; i++) kept.add(Integer.valueOf(1000 + i % 5)); break;
                case "throwers": for (int i = 0; i < count; i++) kept.add(new Thrower()); break;
                case "hangers": for (int i = 0; i < count; i++) kept.add(new Hanger()); break;
                case "makers": for (int i = 0; i < count; i++) kept.add(new Maker()); break;
                case "release": isReleased = true; break;
                case "calls": answer = calls == count ? "ok" : "calls " + calls; break;
                default: new Object().hashCode(); break;
            }
            System.out.println(answer);
        }
    }
}
