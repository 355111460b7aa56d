/** Makes known numbers of objects at known methods. */
public class Made {
    static class Base {}

    static class Derived extends Base {
        Object inner = new Inner();

        Derived() {
            this(7);
        }

        Derived(int number) {}
    }

    static class Inner {}

    static Object last;

    static void derived() {
        last = new Derived();
    }

    static void bytes() {
        last = new byte[100];
    }

    static void rows() {
        last = new short[3][4];
    }

    static void references() {
        last = new Inner[5];
    }

    static void reflected() throws Exception {
        last = Base.class.newInstance();
    }

    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[0]);
        for (int i = 0; i < count; i++) {
            derived();
            bytes();
            rows();
            references();
            reflected();
        }
        System.out.println(last);
    }
}
