package shop;

import java.io.InputStream;
import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/**
 * A web shop that dies of its sessions. The registry is swept of idle sessions, but the sweeper
 * compares milliseconds with seconds, so no session is ever idle for long enough. With a small heap
 * it ends in an OutOfMemoryError after a second or two:
 *
 * <pre>java -Xmx48m -XX:+HeapDumpOnOutOfMemoryError shop.Leak</pre>
 *
 * <p>An argument limits the visitors per second, so that there is time to watch the leak:
 *
 * <pre>java -Xmx256m shop.Leak 500</pre>
 */
public final class Leak {
    static final String[] PAGES = {"home", "search", "basket", "checkout"};

    public static void main(String[] args) throws Exception {
        int plugins = 3;
        for (int i = 1; i <= plugins; i++) {
            startPlugin("discount-" + i);
        }
        daemon("session-sweeper", SessionRegistry::sweepForever);
        CountDownLatch never = new CountDownLatch(1);
        for (int i = 1; i <= 2; i++) {
            daemon("request-handler-" + i, () -> handleOneAndWait(never));
        }
        long pause = args.length > 0 ? 1_000_000_000 / Integer.parseInt(args[0]) : 0;
        for (int visitor = 1;; visitor++) {
            handle("visitor-" + visitor, PAGES[visitor % PAGES.length]);
            LockSupport.parkNanos(pause);
        }
    }

    /** A request: what is bought goes into the session, and so does the page that was rendered. */
    static Session handle(String visitor, String page) {
        Session session = SessionRegistry.of(visitor);
        session.cart.add(new CartItem("item-" + visitor.hashCode() % 97, 1 + visitor.length() % 3));
        session.lastPage = render(page);
        return session;
    }

    static byte[] render(String page) {
        byte[] html = new byte[2500 + page.length()];
        Arrays.fill(html, (byte) ' ');
        return html;
    }

    /** A request in flight: its buffer lives in a frame of this thread and nowhere else. */
    static void handleOneAndWait(CountDownLatch until) {
        byte[] upload = new byte[64 * 1024];
        Session mine = handle(Thread.currentThread().getName(), "checkout");
        try {
            until.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        mine.lastPage = upload;
    }

    static void startPlugin(String name) throws Exception {
        PluginLoader loader = new PluginLoader(name);
        Constructor<?> constructor = loader.loadClass("shop.DiscountPlugin").getDeclaredConstructor();
        constructor.setAccessible(true);
        Runnable plugin = (Runnable) constructor.newInstance();
        plugin.run();
        SessionRegistry.PLUGINS.add(plugin);
    }

    static void daemon(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
    }
}

/** Every session of the shop, by visitor. */
final class SessionRegistry {
    static final Map<String, Session> SESSIONS = new ConcurrentHashMap<>();
    static final List<Runnable> PLUGINS = new ArrayList<>();
    static final long MAX_IDLE_SECONDS = Long.getLong("shop.idle", 1800);

    static Session of(String visitor) {
        Session session = SESSIONS.computeIfAbsent(visitor, Session::new);
        session.lastSeen = System.currentTimeMillis();
        return session;
    }

    static void sweepForever() {
        try {
            while (true) {
                Thread.sleep(200);
                sweep();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** The bug: now is in seconds, lastSeen in milliseconds, and the difference is always negative. */
    static void sweep() {
        long now = System.currentTimeMillis() / 1000;
        for (Iterator<Session> i = SESSIONS.values().iterator(); i.hasNext();) {
            if (now - i.next().lastSeen > MAX_IDLE_SECONDS) {
                i.remove();
            }
        }
    }
}

/** What the shop remembers of a visitor. */
final class Session {
    final String visitor;
    final List<CartItem> cart = new ArrayList<>();
    long lastSeen;
    byte[] lastPage;

    Session(String visitor) {
        this.visitor = visitor;
    }
}

/** A line of the shopping cart. */
final class CartItem {
    final String sku;
    final int quantity;

    CartItem(String sku, int quantity) {
        this.sku = sku;
        this.quantity = quantity;
    }
}

/** A loader of its own for each plugin, so that the plugin's class exists several times. */
final class PluginLoader extends ClassLoader {
    final String plugin;

    PluginLoader(String plugin) {
        super(PluginLoader.class.getClassLoader());
        this.plugin = plugin;
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        if (!name.equals("shop.DiscountPlugin")) {
            return super.loadClass(name, resolve);
        }
        try (InputStream in = getResourceAsStream("shop/DiscountPlugin.class")) {
            byte[] bytes = new byte[64 * 1024];
            int length = 0;
            for (int n; (n = in.read(bytes, length, bytes.length - length)) > 0; length += n) {
                continue;
            }
            return defineClass(name, bytes, 0, length);
        } catch (java.io.IOException e) {
            throw new ClassNotFoundException(name, e);
        }
    }
}

/** A plugin with a table of its own. */
final class DiscountPlugin implements Runnable {
    static double[] table;

    @Override
    public void run() {
        table = new double[1000];
        for (int i = 0; i < table.length; i++) {
            table[i] = i / 1000.0;
        }
    }
}
