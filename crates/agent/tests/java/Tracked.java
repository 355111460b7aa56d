/** Makes objects and arrays of one size each, and keeps the last quarter of them. */
public class Tracked {
    static final int MADE = 400_000, ARRAYS = 8_000;
    static final Object[] KEPT = new Object[MADE / 4], KEPT_ARRAYS = new Object[ARRAYS / 4];

    static class Made { int value; Made(int value) { this.value = value; } }

    public static void main(String[] args) {
        for (int i = 0; i < MADE; i++) {
            KEPT[i % KEPT.length] = new Made(i);
        }
        for (int i = 0; i < ARRAYS; i++) {
            KEPT_ARRAYS[i % KEPT_ARRAYS.length] = new char[2000];
        }
        System.gc();
        System.out.println(KEPT.length + KEPT_ARRAYS.length);
    }
}
