import java.sql.*;
import java.util.Random;

/** H2 in memory: transfers between accounts with a history, and reports over them. The argument says how many rounds. */
public class H2Accounts {
    private static final int ACCOUNTS = 20_000;

    public static void main(String[] args) throws SQLException {
        Random random = new Random(7);
        try (Connection db = DriverManager.getConnection("jdbc:h2:mem:bank"); Statement plain = db.createStatement()) {
            plain.execute("create table account(id int primary key, branch int, name varchar(40), balance bigint)");
            plain.execute("create table history(id identity primary key, account int, amount bigint, note varchar(60))");
            plain.execute("create index history_account on history(account)");
            try (PreparedStatement insert = db.prepareStatement("insert into account values(?, ?, ?, ?)")) {
                for (int i = 0; i < ACCOUNTS; i++) {
                    insert.setInt(1, i);
                    insert.setInt(2, i % 97);
                    insert.setString(3, "owner " + i);
                    insert.setLong(4, 1000);
                    insert.executeUpdate();
                }
            }
            db.setAutoCommit(false);
            long total = 0;
            for (int round = Integer.parseInt(args[0]); round > 0; round--) total += round(db, random);
            System.out.println(total);
        }
    }

    private static long round(Connection db, Random random) throws SQLException {
        try (PreparedStatement update = db.prepareStatement("update account set balance = balance + ? where id = ?");
             PreparedStatement note = db.prepareStatement("insert into history(account, amount, note) values(?, ?, ?)");
             PreparedStatement read = db.prepareStatement("select balance, name from account where id = ?");
             PreparedStatement report = db.prepareStatement("select a.branch, count(*), sum(h.amount) from account a join history h"
                 + " on h.account = a.id where a.branch < ? group by a.branch order by 3 desc")) {
            long seen = 0;
            for (int i = 0; i < 2000; i++) {
                int account = random.nextInt(ACCOUNTS);
                long amount = random.nextInt(200) - 100;
                update.setLong(1, amount);
                update.setInt(2, account);
                update.executeUpdate();
                note.setInt(1, account);
                note.setLong(2, amount);
                note.setString(3, "transfer " + i + " of " + amount);
                note.executeUpdate();
                read.setInt(1, account);
                try (ResultSet row = read.executeQuery()) {
                    while (row.next()) seen += row.getLong(1) + row.getString(2).length();
                }
                db.commit();
            }
            report.setInt(1, 10);
            try (ResultSet rows = report.executeQuery()) {
                while (rows.next()) seen += rows.getLong(2);
            }
            return seen;
        }
    }
}
