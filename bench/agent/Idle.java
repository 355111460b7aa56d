/** Does nothing: what a JVM costs that starts and ends. */
public class Idle {
    public static void main(String[] args) { }
}
