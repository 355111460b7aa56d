/** Makes objects thirty calls deep. */
public class Deep {
    static volatile Object last;

    public static void main(String[] args) {
        for (int i = 0; i < 1000; i++) down(30);
    }

    static void down(int calls) {
        if (calls > 0) down(calls - 1);
        else last = new byte[1000];
    }
}
