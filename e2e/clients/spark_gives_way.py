# SPDX-License-Identifier: Apache-2.0
"""Pi, one task more than there are executors; each waits for the file "go". It leaves a mark when it begins and ends."""
import os
import sys
import time

from pyspark import TaskContext
from pyspark.sql import SparkSession

marks, executors = sys.argv[1], int(sys.argv[2])


def work(partition, numbers):
    def mark(what):
        open(os.path.join(marks, "%s.%d.%d" % (what, partition, TaskContext.get().attemptNumber())), "w").close()

    mark("began")
    deadline = time.monotonic() + 170
    while not os.path.exists(os.path.join(marks, "go")):
        assert time.monotonic() < deadline, "nobody said go"
        time.sleep(0.1)
    value = sum(4.0 / (1.0 + ((i + 0.5) / 200000) ** 2) for i in numbers)
    mark("ended")
    return [value]


spark = SparkSession.builder.getOrCreate()
total = spark.sparkContext.parallelize(range(200000), executors + 1).mapPartitionsWithIndex(work).sum()
with open(os.path.join(marks, "pi"), "w") as f:
    f.write("Pi is roughly %.6f\n" % (total / 200000))
spark.stop()
