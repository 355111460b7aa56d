/** Makes 1,500 objects at each of so many sites, which differ in their callers: Sites POWER_OF_TWO. Every third is kept. */
public class Sites {
    static class Made {}

    static Made make(int depth, int path) {
        if (depth == 0) return new Made();
        if ((path & 1) == 0) return make(depth - 1, path >> 1);
        return make(depth - 1, path >> 1);
    }

    public static void main(String[] args) {
        int sites = Integer.parseInt(args[0]), depth = Integer.numberOfTrailingZeros(sites), count = 0;
        Made[] kept = new Made[sites * 1500];
        for (int i = 0; i < kept.length; i++) {
            Made made = make(depth, i % sites);
            if (i % 3 == 0) kept[i] = made;
        }
        System.gc();
        for (Made made : kept) if (made != null) count++;
        System.out.println(count);
    }
}
