/** Makes a known number of objects of a few classes. */
public class Load {
    static class Node { long a, b; Node next; }
    static Object kept;

    public static void main(String[] args) {
        int count = Integer.parseInt(args[0]), sum = 0;
        for (int i = 0; i < count; i++) {
            Node node = new Node();
            Node[] nodes = new Node[4];
            nodes[i & 3] = node;
            kept = nodes;
            kept = new int[10];
            StringBuilder text = new StringBuilder();
            kept = text;
            sum += text.length() == 0 ? 1 : 0;
        }
        System.out.println(sum);
    }
}
