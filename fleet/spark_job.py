#!/usr/bin/env python3
"""The same questions for Spark: spark-submit fleet/spark_job.py FOLDER OUT [--master local[2]]

FOLDER holds what `tenure export -o FOLDER` wrote for many dumps (a local path, s3a://, hdfs://).
OUT gets a folder of JSON lines per question: totals, growing_classes, shared_leaks, outliers.
"""
import argparse

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as f


def totals(classes):
    some = classes.where(f.col("objects") > 0)
    sums = some.groupBy("class").agg(
        f.sum("objects").alias("objects"), f.sum("shallow").alias("shallow"), f.countDistinct("dump").alias("dumps"))
    return sums.orderBy(f.desc("shallow"), "class")


def growing_classes(classes, dumps):
    named = classes.groupBy("service", "stable_class", "timestamp_ms", "dump").agg(
        f.sum("objects").alias("objects"), f.sum("retained").alias("retained"))
    order = Window.partitionBy("service", "stable_class").orderBy("timestamp_ms", "dump")
    steps = named.withColumn("step", f.col("retained") - f.lag("retained").over(order))
    grown = steps.groupBy("service", "stable_class").agg(
        f.count("*").alias("dumps"), f.min("step").alias("least"), f.sum("step").alias("growth"))
    all_dumps = dumps.groupBy("service").agg(f.countDistinct("dump").alias("all_dumps"))
    steady = grown.join(all_dumps, "service").where("dumps >= 3 AND dumps = all_dumps AND least > 0")
    return steady.drop("least", "all_dumps").orderBy(f.desc("growth"), "stable_class").limit(50)


def shared_leaks(leaks):
    shared = leaks.groupBy("signature").agg(
        f.first("title").alias("title"), f.countDistinct("service").alias("services"),
        f.countDistinct("dump").alias("dumps"), f.max("retained").alias("largest"), f.max("share").alias("share"))
    return shared.where("dumps > 1").orderBy(f.desc("services"), f.desc("dumps"), f.desc("largest"), "signature").limit(50)


def outliers(dumps):
    usual = dumps.groupBy("service").agg(f.expr("percentile(shallow, 0.5)").alias("usual"), f.count("*").alias("n"))
    far = dumps.join(usual, "service").where("n >= 3 AND shallow > 1.5 * usual")
    return far.select("service", "dump", "shallow", "usual", (f.col("shallow") / f.col("usual")).alias("times")).orderBy(f.desc("times"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("out")
    parser.add_argument("--master", help="only where spark-submit does not say it")
    args = parser.parse_args()
    builder = SparkSession.builder.appName("tenure-fleet")
    if args.master:
        builder = builder.master(args.master).config("spark.ui.enabled", "false")
    spark = builder.getOrCreate()
    dumps, classes, leaks = (spark.read.parquet(f"{args.folder}/{t}") for t in ("dumps", "classes", "leaks"))
    answers = {
        "totals": totals(classes),
        "growing_classes": growing_classes(classes, dumps),
        "shared_leaks": shared_leaks(leaks),
        "outliers": outliers(dumps),
    }
    for name, rows in answers.items():
        rows.coalesce(1).write.mode("overwrite").json(f"{args.out}/{name}")
    spark.stop()


if __name__ == "__main__":
    main()
