-- Classes whose retained size grew from every dump of a service to its next, most growth first.
-- Needs three dumps of a service, because two points make any line.
WITH named AS (
  SELECT service, stable_class, timestamp_ms, dump, sum(objects) AS objects, sum(retained) AS retained
  FROM classes
  GROUP BY ALL
), steps AS (
  SELECT *, retained - lag(retained) OVER (PARTITION BY service, stable_class ORDER BY timestamp_ms, dump) AS step
  FROM named
)
SELECT service, stable_class AS class, count(*) AS dumps,
       arg_min(objects, timestamp_ms) AS objects_first, arg_max(objects, timestamp_ms) AS objects_last,
       sum(step) AS growth
FROM steps
GROUP BY service, stable_class
HAVING count(*) >= 3 AND count(*) = (SELECT count(DISTINCT dump) FROM dumps d WHERE d.service = steps.service)
   AND min(step) > 0
ORDER BY growth DESC, class
LIMIT 50;
