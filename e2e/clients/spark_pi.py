# SPDX-License-Identifier: Apache-2.0
"""Pi by quadrature (no chance in it), on as many tasks as there are slices; its second stage shuffles."""
import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
n, slices = 200000, 4
total = (spark.sparkContext.parallelize(range(n), slices)
         .map(lambda i: (i % 3, 4.0 / (1.0 + ((i + 0.5) / n) ** 2)))
         .reduceByKey(lambda a, b: a + b).values().sum())
with open(sys.argv[1], "w") as f:
    f.write("Pi is roughly %.6f\n" % (total / n))
spark.stop()
