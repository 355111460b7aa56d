import java.util.ArrayList;
import java.util.List;

/** Ends right after it has caught an OutOfMemoryError, by the end of its main method. */
public class Caught {
    public static void main(String[] args) {
        List<byte[]> held = new ArrayList<>();
        try {
            for (;;) held.add(new byte[10_007]);
        } catch (OutOfMemoryError e) {
            held.clear();
            System.out.println("caught");
        }
    }
}
