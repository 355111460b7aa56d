-- Dumps that are far larger than the usual one of their service: more than 1.5 times the median.
SELECT service, dump, shallow, median(shallow) OVER (PARTITION BY service) AS usual,
       shallow / median(shallow) OVER (PARTITION BY service) AS times
FROM dumps
QUALIFY count(*) OVER (PARTITION BY service) >= 3
    AND shallow > 1.5 * median(shallow) OVER (PARTITION BY service)
ORDER BY times DESC, dump;
