import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;

/** Holds secrets of many kinds, copies of texts, and numbers. None of it may survive a redaction. */
public class Secrets {
    static final class Account {
        final String owner;
        final char[] pin;
        final byte[] token;
        final long number;
        final char grade;
        char[] password;

        Account(int n) {
            owner = "Ada Lovelace of account " + n % 50;
            pin = ("pin-of-number-" + n).toCharArray();
            token = ("bearer-token-bytes-" + n).getBytes();
            number = 4_000_000_000_000L + n;
            grade = (char) ('A' + n % 5);
            password = ("hunter2-" + n).toCharArray();
        }
    }

    static final String CREDENTIALS = new StringBuilder("demo.").append("remote.credentials").toString();
    static char[] password = "correct-horse-password".toCharArray();
    static String apiKey = new StringBuilder("plain-looking-but-named-").append(42).toString();
    static final List<Object> all = new ArrayList<>();
    static final Map<String, String> settings = new HashMap<>();

    /** Has frames of this file on its stack. */
    static final class Waiting extends Thread {
        final CountDownLatch begun = new CountDownLatch(1);

        @Override
        public void run() {
            await(new Object());
        }

        void await(Object lock) {
            synchronized (lock) {
                begun.countDown();
                try {
                    lock.wait();
                } catch (InterruptedException e) {
                    // It ends.
                }
            }
        }
    }

    public static void main(String[] args) throws InterruptedException {
        Waiting waiting = new Waiting();
        waiting.setDaemon(true);
        waiting.start();
        waiting.begun.await();
        for (int i = 0; i < 300; i++) {
            all.add(new Account(i));
        }
        all.add(new StringBuilder("AKIAIOSFODNN7").append("EXAMPLE").toString());
        all.add(new StringBuilder("jdbc:postgresql://app:").append("s3cr3tword@db.example/orders").toString());
        all.add("umlauts \u00e4\u00f6\u00fc and \u30c6\u30ad\u30b9\u30c8 " + all.size());
        all.add(new long[] {4111111111111111L, 42, 43});
        all.add(new double[] {3.14159, 2.71828});
        all.add(Long.valueOf(5_500_000_000_000_000L));
        settings.put("datasource.password", "correct horse battery staple " + all.size());
    }
}
