import java.util.ArrayList;
import java.util.List;

/** Ends in an OutOfMemoryError that leaves no memory for anything else, not even for an orderly end. */
public class Exhausted {
    static final List<byte[]> HELD = new ArrayList<>();

    static volatile boolean isFailing, isFull;

    public static void main(String[] args) {
        Thread hoarder = new Thread(() -> hoard(new ArrayList<>()), "hoarder");
        hoarder.setDaemon(true);
        hoarder.start();
        try {
            fill(new ArrayList<>());
        } catch (OutOfMemoryError e) {
            isFailing = true;
            while (!isFull) Thread.yield();
            throw e;
        }
    }

    /** Takes every byte that is left or becomes free once `main` has failed. */
    static void hoard(List<Object> own) {
        while (!isFailing) Thread.yield();
        for (;;) {
            try {
                own.add(new long[2]);
            } catch (OutOfMemoryError e) {
                isFull = true;
            }
        }
    }

    /** What the frame holds is gone when the error has left it. */
    static void fill(List<byte[]> local) {
        for (;;) {
            byte[] piece = new byte[10_007];
            HELD.add(piece);
            local.add(piece);
        }
    }
}
