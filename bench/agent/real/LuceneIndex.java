import java.util.Random;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.*;
import org.apache.lucene.index.*;
import org.apache.lucene.store.*;

/** Lucene: indexes texts of words of a skewed frequency in memory. The argument says how many thousand. */
public class LuceneIndex {
    public static void main(String[] args) throws Exception {
        Random random = new Random(7);
        String[] words = new String[30_000];
        for (int i = 0; i < words.length; i++) words[i] = Integer.toString(i * 7919 + 1, 36);
        try (Directory directory = new ByteBuffersDirectory();
             IndexWriter writer = new IndexWriter(directory, new IndexWriterConfig(new StandardAnalyzer()))) {
            for (int i = Integer.parseInt(args[0]) * 1000; i > 0; i--) {
                StringBuilder text = new StringBuilder();
                for (int n = 60 + random.nextInt(60); n > 0; n--) {
                    double skewed = random.nextDouble();
                    text.append(words[(int) (skewed * skewed * skewed * words.length)]).append(' ');
                }
                Document document = new Document();
                document.add(new StringField("id", "doc" + i, Field.Store.YES));
                document.add(new TextField("body", text.toString(), Field.Store.NO));
                document.add(new NumericDocValuesField("length", text.length()));
                writer.addDocument(document);
            }
            writer.forceMerge(1);
            writer.commit();
            try (DirectoryReader reader = DirectoryReader.open(writer)) {
                System.out.println(reader.numDocs() + " " + reader.docFreq(new Term("body", words[3])));
            }
        }
    }
}
