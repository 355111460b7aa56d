/** Sites with more than one caller, whose objects can be counted by hand. */
public class Shares {
    static volatile Object last;

    static class Node {
        Node next;
        int value;
        Node(int value) { this(null, value); if (value < 0) next = new Node(-value); }
        Node(Node next, int value) { this.next = next; this.value = value; }
    }

    static class Base {
        Object content;
        Base(Object content) { this.content = content; }
    }

    static class Sized extends Base {
        Sized(int size) { super(new int[size]); }
    }

    static class Wrapped extends Base {
        Wrapped(Object content) { super(new Base(new Base(content))); }
    }

    static class Refused extends Base {
        Refused(int value) { super(fail(value)); }
        static Object fail(int value) { if (value >= 0) throw new IllegalArgumentException(); return null; }
    }

    static class Reflected {
        public Reflected() { }
    }

    interface Maker { Object make(int value); }

    static Object plain() { return new Object(); }
    static Object node() { return new Node(null, 7); }
    static Object array(int size) { return new byte[size]; }
    static Object sized() { return new Sized(3); }
    static Object copy(int[] from) { return from.clone(); }
    static Object nested() { return new long[2][3]; }

    static final Maker[] MAKERS = {
        value -> plain(), value -> node(), value -> array(16), value -> sized(), value -> copy(new int[5]), value -> nested()
    };

    static void often(Maker maker, int value) { last = maker.make(value); }
    static void seldom(Maker maker, int value) { last = maker.make(value); }

    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        for (Maker maker : MAKERS) {
            for (int i = 0; i < rounds; i++) {
                if (i % 4 != 3) often(maker, i); else seldom(maker, i);
            }
        }
        for (int i = 1; i <= 1000; i++) {
            last = new Node(-i);
            last = new Wrapped(last);
            last = Reflected.class.getConstructor().newInstance();
            try { last = new Refused(i); } catch (IllegalArgumentException e) { last = e; }
        }
        System.out.println("made");
    }
}
