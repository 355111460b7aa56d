//! Profiles as the agent prints them.

/// Two sample tables with every kind of content.
pub const EVERY_TABLE: &str = "\
THREAD START (obj=50000001, id = 200001, name=\"main\", group=\"main\")
TRACE 300001:
\tdemo.Cpu.hot(Cpu.java:3)
\tdemo.Cpu.main(Cpu.java:14)
TRACE 300002: (thread=200001)
\tdemo.Cpu.<init>(Cpu.java:9)
\tdemo.Cpu.main(Cpu.java:15)
TRACE 300003:
\t<empty>
MONITOR TIME BEGIN (total = 40 ms) Sat Nov 21 04:57:27 2026
rank   self  accum   count trace monitor
   1 100.00% 100.00%       4 300002 Ljava/lang/Object; (Java)
MONITOR TIME END
SITES BEGIN (ordered by live bytes) Sat Nov 21 04:57:27 2026
    1 80.00% 80.00%      800   10      1600    20 300002 byte[]
    2 20.00% 100.00%      200    5       200     5 300003 demo.</script>
SITES END
CPU SAMPLES BEGIN (total = 12) Sat Nov 21 04:57:27 2026
   1 75.00% 75.00%       9 300001 demo.Cpu.hot
   2 25.00% 100.00%       3 300002 demo.Cpu.<init>
CPU SAMPLES END
CPU TIME (ms) BEGIN (total = 100) Sat Nov 21 04:57:27 2026
   1 70.00% 70.00%     900 300001 demo.Cpu.hot
   2 30.00% 100.00%       3 300002 demo.Cpu.<init>
CPU TIME (ms) END
";
