-- Leak signatures that several services, or several dumps, have in common.
SELECT signature, any_value(title) AS title, count(DISTINCT service) AS services,
       count(DISTINCT dump) AS dumps, max(retained) AS largest, max(share) AS share
FROM leaks
GROUP BY signature
HAVING count(DISTINCT dump) > 1
ORDER BY services DESC, dumps DESC, largest DESC, signature
LIMIT 50;
