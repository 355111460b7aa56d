/** Collects its garbage again and again, with much to look through. */
public class Collected {
    static final Object[][] kept = new Object[2000][];

    public static void main(String[] args) {
        for (int i = 0; i < kept.length; i++) {
            kept[i] = new Object[100];
            for (int k = 0; k < 100; k++) kept[i][k] = new int[2];
        }
        for (int i = 0; i < 60; i++) System.gc();
        System.out.println("collected");
    }
}
