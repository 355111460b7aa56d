import java.io.*;
import java.util.*;

/** Does what the lines on standard input say, so that a test decides when. Ends with code 3. */
public class Patient {
    static final List<Object> KEEP = new ArrayList<>();
    static class Early { int value = 1; }
    static class Late { int value = 2; }

    static void early() { for (int i = 0; i < 1000; i++) KEEP.add(new Early()); }
    static void late() { for (int i = 0; i < 500; i++) KEEP.add(new Late()); }
    static double spin(long ms) {
        double sum = 0;
        for (long end = System.currentTimeMillis() + ms; System.currentTimeMillis() < end; ) for (int i = 1; i < 10000; i++) sum += Math.sqrt(i);
        return sum;
    }

    public static void main(String[] args) throws IOException {
        early();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line; (line = lines.readLine()) != null; ) {
            switch (line) {
                case "late": late(); break;
                case "spin": if (spin(700) == 1) System.out.println("never"); break;
                case "forget": KEEP.clear(); break;
                default: System.out.println("kept " + KEEP.size()); System.exit(3);
            }
            System.out.println("done " + line);
        }
    }
}
