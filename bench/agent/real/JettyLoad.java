import java.io.*;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.server.*;
import org.eclipse.jetty.util.Callback;

/** Jetty answers requests of eight clients on connections that stay open. The argument says how many thousand requests. */
public class JettyLoad {
    private static final int CLIENTS = 8;

    public static void main(String[] args) throws Exception {
        Server server = new Server(0);
        server.setHandler(new Handler.Abstract() {
            @Override
            public boolean handle(Request request, Response response, Callback callback) {
                StringBuilder page = new StringBuilder("<ul>");
                for (String part : request.getHttpURI().getQuery().split("&")) page.append("<li>").append(part.toUpperCase());
                response.getHeaders().put(HttpHeader.CONTENT_TYPE, "text/html");
                response.write(true, ByteBuffer.wrap(page.append("</ul>").toString().getBytes(StandardCharsets.UTF_8)), callback);
                return true;
            }
        });
        server.start();
        int port = ((ServerConnector) server.getConnectors()[0]).getLocalPort();
        int requests = Integer.parseInt(args[0]) * 1000 / CLIENTS;
        Thread[] clients = new Thread[CLIENTS];
        for (int i = 0; i < CLIENTS; i++) {
            clients[i] = new Thread(() -> client(port, requests));
            clients[i].start();
        }
        for (Thread client : clients) client.join();
        server.stop();
        System.out.println(CLIENTS * requests);
    }

    private static void client(int port, int requests) {
        try (Socket socket = new Socket("127.0.0.1", port)) {
            socket.setTcpNoDelay(true);
            InputStream in = new BufferedInputStream(socket.getInputStream());
            OutputStream out = socket.getOutputStream();
            for (int i = 0; i < requests; i++) {
                out.write(("GET /page?a=" + i + "&b=two&c=three&d=four HTTP/1.1\r\nHost: here\r\nAccept: text/html\r\n\r\n").getBytes(StandardCharsets.US_ASCII));
                int length = 0;
                for (String line = line(in); !line.isEmpty(); line = line(in)) {
                    if (line.toLowerCase().startsWith("content-length:")) length = Integer.parseInt(line.substring(15).trim());
                }
                if (in.readNBytes(length).length != length || length == 0) throw new IOException("a short answer");
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static String line(InputStream in) throws IOException {
        StringBuilder line = new StringBuilder();
        for (int c = in.read(); c != '\n'; c = in.read()) {
            if (c < 0) throw new EOFException();
            if (c != '\r') line.append((char) c);
        }
        return line.toString();
    }
}
