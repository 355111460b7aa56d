import java.util.*;

/** Keeps every session that ever logged in. */
public class Leak {
    static class Session {
        final String user;
        final byte[] data = new byte[900];
        Session(String user) { this.user = user; }
    }

    static class Registry {
        final Map<String, Session> sessions = new HashMap<>();
        void login(int i) { sessions.put("user" + i, new Session("name" + i)); }
    }

    static Registry registry = new Registry();

    public static void main(String[] args) {
        for (int i = 0; i < 3000; i++) registry.login(i);
        System.out.println("sessions " + registry.sessions.size());
    }
}
