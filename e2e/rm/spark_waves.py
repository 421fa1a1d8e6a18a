# SPDX-License-Identifier: Apache-2.0
"""Eight tasks on two executors; all but the first two wait for the file "go". Each leaves a mark."""
import os
import sys
import time

from pyspark import TaskContext
from pyspark.sql import SparkSession

marks = sys.argv[1]


def work(partition, numbers):
    context = TaskContext.get()
    if partition >= 2:
        deadline = time.monotonic() + 170
        while not os.path.exists(os.path.join(marks, "go")):
            assert time.monotonic() < deadline, "nobody said go"
            time.sleep(0.1)
    open(os.path.join(marks, "task.%d.%d.%d" % (partition, context.attemptNumber(), context.taskAttemptId())), "w").close()
    return [sum(4.0 / (1.0 + ((i + 0.5) / 200000) ** 2) for i in numbers)]


spark = SparkSession.builder.getOrCreate()
total = spark.sparkContext.parallelize(range(200000), 8).mapPartitionsWithIndex(work).sum()
with open(os.path.join(marks, "pi"), "w") as f:
    f.write("Pi is roughly %.6f\n" % (total / 200000))
spark.stop()
