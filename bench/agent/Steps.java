/**
 * Does one thing a number of times: {@code Steps call|nest|object|array TIMES}. Two numbers of times show how many
 * instructions one of them takes; see {@code bench/instructions.py}.
 */
public class Steps {
    static final int ROUNDS = 40;
    static int sum;
    static Object last;

    public static void main(String[] arguments) {
        int times = Integer.parseInt(arguments[1]) / ROUNDS;
        for (int round = 0; round < ROUNDS; round++) {
            switch (arguments[0]) {
                case "call": calls(times); break;
                case "nest": nested(times); break;
                case "object": objects(times); break;
                case "array": arrays(times); break;
                default: throw new IllegalArgumentException(arguments[0]);
            }
        }
        if (sum == 1) {
            System.out.println(last);
        }
    }

    static void calls(int times) {
        for (int i = 0; i < times; i++) {
            leaf(i);
        }
    }

    static void nested(int times) {
        for (int i = 0; i < times; i++) {
            caller(i);
        }
    }

    static void objects(int times) {
        for (int i = 0; i < times; i++) {
            last = new Steps();
        }
    }

    static void arrays(int times) {
        for (int i = 0; i < times; i++) {
            last = new int[2];
        }
    }

    static void leaf(int i) {
        sum += i ^ sum >>> 3;
    }

    static void caller(int i) {
        leaf(i);
        sum ^= i;
    }
}
