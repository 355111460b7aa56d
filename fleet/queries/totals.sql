-- Objects and bytes of all dumps by class: what `tenure histogram` says of each, added up.
SELECT class, sum(objects) AS objects, sum(shallow) AS shallow, count(DISTINCT dump) AS dumps
FROM classes
WHERE objects > 0
GROUP BY class
ORDER BY shallow DESC, class;
