-- The same for allocation sites; only dumps with allocation traces have any.
WITH named AS (
  SELECT service, stack, timestamp_ms, dump, sum(objects) AS objects, sum(retained) AS retained
  FROM sites
  GROUP BY ALL
), steps AS (
  SELECT *, retained - lag(retained) OVER (PARTITION BY service, stack ORDER BY timestamp_ms, dump) AS step
  FROM named
)
SELECT service, stack, count(*) AS dumps, sum(step) AS growth
FROM steps
GROUP BY service, stack
HAVING count(*) >= 3 AND min(step) > 0
ORDER BY growth DESC, stack
LIMIT 50;
