import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.*;
import java.util.SplittableRandom;

/** Writes a dump of any number of objects with 4-byte ids without having them in memory, and beside it, as JSON, what
 *  each of its owners retains. Usage: java Billions OBJECTS OUT.hprof
 *
 *  Ledger.held (45 % of the objects): chains of 1,000, sixty-four of them woven into each other in the file; each
 *  eighth link also names a Value anywhere in the catalog. Archive.held (25 %): complete binary trees. Catalog.held
 *  (20 %): arrays of Values. A Value that a link names has two owners, so nothing dominates it. The rest is garbage.
 *  Ids are consecutive: with 4 bytes, more than 2^31 objects leave no room between them. */
public class Billions {
    static final int OBJECT = 1, CLASS = 2, STRING = 3, OBJECTS = 4, LEDGER = 5, ARCHIVE = 6, CATALOG = 7, LINK = 8, PAIR = 9, VALUE = 10, FOLDER = 11;
    static final String[] NAMES = { "java/lang/Object", "java/lang/Class", "java/lang/String", "[Ljava/lang/Object;", "Ledger", "Archive", "Catalog", "Link", "Pair", "Value", "Folder" };
    static final int STATIC = 100, NEXT = 101, VALUE_OF = 102, NUMBER = 103, LEFT = 104, RIGHT = 105;
    static final int CHAIN = 1000, WOVEN = 64, PAGE = 1_000_000, TREE = (1 << 20) - 1;
    static final int FIRST = 1000; // the id of the first object that is no class
    static final int SEGMENT = 512 << 20;

    final FileChannel out;
    final ByteBuffer buffer = ByteBuffer.allocateDirect(16 << 20);
    long segmentAt = -1, written, id = FIRST;

    Billions(FileChannel out) { this.out = out; }

    void flush() throws IOException {
        buffer.flip();
        while (buffer.hasRemaining()) written += out.write(buffer);
        buffer.clear();
    }
    void need(int bytes) throws IOException {
        if (buffer.remaining() < bytes) flush();
        if (segmentAt >= 0 && written + buffer.position() - segmentAt > SEGMENT) { endSegment(); startSegment(); }
    }
    void startSegment() throws IOException {
        if (buffer.remaining() < 64) flush();
        segmentAt = written + buffer.position();
        buffer.put((byte) 0x1c).putInt(0).putInt(0);
    }
    void endSegment() throws IOException {
        flush();
        ByteBuffer length = ByteBuffer.allocate(4).putInt((int) (written - segmentAt - 9)).flip();
        out.write(length, segmentAt + 5);
        segmentAt = -1;
    }
    void name(int id, String text) {
        byte[] bytes = text.getBytes(java.nio.charset.StandardCharsets.UTF_8);
        buffer.put((byte) 1).putInt(0).putInt(4 + bytes.length).putInt(id).put(bytes);
    }
    void classDump(int id, int bytes, int constant, int... fields) { // constant: the object of the static field, 0 for none
        buffer.put((byte) 0x20).putInt(id).putInt(0).putInt(id == OBJECT ? 0 : OBJECT);
        for (int i = 0; i < 5; i++) buffer.putInt(0);
        buffer.putInt(bytes).putShort((short) 0).putShort((short) (constant == 0 ? 0 : 1));
        if (constant != 0) buffer.putInt(STATIC).put((byte) 2).putInt(constant);
        buffer.putShort((short) fields.length);
        for (int f : fields) buffer.putInt(f).put((byte) (f == NUMBER ? 10 : 2));
    }
    void instance(int type, int a) throws IOException {
        need(21);
        buffer.put((byte) 0x21).putInt((int) id++).putInt(0).putInt(type).putInt(4).putInt(a);
    }
    void instance(int type, int a, int b) throws IOException {
        need(25);
        buffer.put((byte) 0x21).putInt((int) id++).putInt(0).putInt(type).putInt(8).putInt(a).putInt(b);
    }
    void array(long length) throws IOException { // its elements follow
        if (buffer.remaining() < 32) flush();
        buffer.put((byte) 0x22).putInt((int) id++).putInt(0).putInt((int) length).putInt(OBJECTS);
    }
    void element(long to) throws IOException {
        if (buffer.remaining() < 4) flush();
        buffer.putInt((int) to);
    }
    static long arrayBytes(long length) { return 12 + 4 * length + 7 & ~7L; } // a 32-bit VM's

    public static void main(String[] a) throws IOException {
        long objects = Long.parseLong(a[0]);
        Path file = Path.of(a[1]);
        long weaves = Math.max(1, objects * 45 / 100 / (CHAIN * WOVEN)), links = weaves * CHAIN * WOVEN;
        long trees = Math.max(1, objects / 4 / TREE), folders = trees * TREE;
        long pages = Math.max(1, objects / 5 / PAGE), values = pages * PAGE;
        long garbage = Math.max(0, objects - links - folders - values - pages - 3);
        long total = 3 + pages + links + folders + values + garbage;
        if (FIRST + total >= 1L << 32) throw new IllegalArgumentException("4-byte ids allow no more than 2^32 objects");
        try (FileChannel out = FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
            new Billions(out).write(file, weaves, trees, pages, garbage);
        }
    }

    void write(Path file, long weaves, long trees, long pages, long garbage) throws IOException {
        buffer.put("JAVA PROFILE 1.0.2\0".getBytes()).putInt(4).putLong(1_700_000_000_000L);
        for (int i = 0; i < NAMES.length; i++) name(200 + i, NAMES[i]);
        String[] fields = { "held", "next", "value", "number", "left", "right" };
        for (int i = 0; i < fields.length; i++) name(STATIC + i, fields[i]);
        for (int i = 0; i < NAMES.length; i++) buffer.put((byte) 2).putInt(0).putInt(16).putInt(i + 1).putInt(i + 1).putInt(0).putInt(200 + i);
        buffer.put((byte) 5).putInt(0).putInt(12).putInt(0).putInt(0).putInt(0);

        long heads = weaves * WOVEN, links = heads * CHAIN, values = pages * PAGE, folders = trees * TREE;
        long ledger = FIRST, archive = ledger + 1, catalog = archive + 1, firstPage = catalog + 1;
        long firstLink = firstPage + pages, firstFolder = firstLink + links, firstValue = firstFolder + folders, firstGarbage = firstValue + values;
        startSegment();
        for (int c = 1; c <= NAMES.length; c++) { buffer.put((byte) 0x05).putInt(c); }
        for (int c : new int[] { OBJECT, CLASS, STRING, OBJECTS }) classDump(c, 0, 0);
        classDump(LEDGER, 0, (int) ledger);
        classDump(ARCHIVE, 0, (int) archive);
        classDump(CATALOG, 0, (int) catalog);
        classDump(LINK, 4, 0, NEXT);
        classDump(PAIR, 8, 0, NEXT, VALUE_OF);
        classDump(VALUE, 4, 0, NUMBER);
        classDump(FOLDER, 8, 0, LEFT, RIGHT);

        array(heads);
        for (long i = 0; i < heads; i++) element(firstLink + i / WOVEN * WOVEN * CHAIN + i % WOVEN);
        array(trees);
        for (long i = 0; i < trees; i++) element(firstFolder + i * TREE);
        array(pages);
        for (long i = 0; i < pages; i++) element(firstPage + i);
        for (long p = 0; p < pages; p++) {
            need(32); // pages may end a segment, elements may not
            array(PAGE);
            for (long i = 0; i < PAGE; i++) element(firstValue + p * PAGE + i);
        }
        SplittableRandom random = new SplittableRandom(42);
        long[] named = new long[(int) (values / 64 + 1)];
        long pairs = 0, shared = 0;
        for (long i = 0; i < links; i++) {
            boolean last = i / WOVEN % CHAIN == CHAIN - 1;
            int next = last ? 0 : (int) (firstLink + i + WOVEN);
            if (i / WOVEN % 8 != 7) { instance(LINK, next); continue; }
            long value = random.nextLong(values);
            if ((named[(int) (value >> 6)] & 1L << value) == 0) { named[(int) (value >> 6)] |= 1L << value; shared++; }
            instance(PAIR, next, (int) (firstValue + value));
            pairs++;
        }
        for (long i = 0; i < folders; i++) {
            long at = i % TREE, root = firstFolder + i - at;
            boolean leaf = 2 * at + 2 >= TREE;
            instance(FOLDER, leaf ? 0 : (int) (root + 2 * at + 1), leaf ? 0 : (int) (root + 2 * at + 2));
        }
        for (long i = 0; i < values; i++) instance(VALUE, (int) i);
        for (long i = 0; i < garbage; i++) instance(LINK, i % CHAIN == CHAIN - 1 || i + 1 == garbage ? 0 : (int) (firstGarbage + i + 1));
        endSegment();
        buffer.put((byte) 0x2c).putInt(0).putInt(0);
        flush();

        // A 32-bit VM gives each instance here 16 bytes: 8 of a header and 4 or 8 of fields, in units of 8.
        String truth = String.format("""
            {"objects": %d, "garbage_objects": %d, "garbage_bytes": %d,
             "ledger": {"id": %d, "objects": %d, "retained": %d},
             "archive": {"id": %d, "objects": %d, "retained": %d},
             "catalog": {"id": %d, "objects": %d, "retained": %d},
             "values_without_owner": {"objects": %d, "bytes": %d}, "pairs": %d}
            """, 3 + pages + links + folders + values + garbage, garbage, 16 * garbage,
            ledger, 1 + links, arrayBytes(heads) + 16 * links,
            archive, 1 + folders, arrayBytes(trees) + 16 * folders,
            catalog, 1 + pages + values - shared, arrayBytes(pages) + pages * arrayBytes(PAGE) + 16 * (values - shared),
            shared, 16 * shared, pairs);
        Files.writeString(Path.of(file + ".expected.json"), truth, StandardOpenOption.CREATE_NEW);
        System.out.print(truth);
    }
}
