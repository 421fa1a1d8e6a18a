// SPDX-License-Identifier: Apache-2.0

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapreduce.InputFormat;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.JobCounter;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.output.NullOutputFormat;
import org.apache.hadoop.mapreduce.lib.input.InvalidInputException;

/**
 * A MapReduce job whose data is on known hosts: PlacedJob QUEUE MILLISECONDS HOST... has one map
 * task for each HOST given. It prints how many of them ran on their host.
 */
public class PlacedJob {
  static final String HOSTS = "creel.placed.hosts";
  static final String MILLIS = "creel.placed.millis";

  public static class Split extends InputSplit implements Writable {
    private String host = "";

    public Split() {}

    Split(String host) {
      this.host = host;
    }

    @Override
    public long getLength() {
      return 1;
    }

    @Override
    public String[] getLocations() {
      return new String[] {host};
    }

    @Override
    public void write(DataOutput out) throws IOException {
      out.writeUTF(host);
    }

    @Override
    public void readFields(DataInput in) throws IOException {
      host = in.readUTF();
    }
  }

  public static class Placed extends InputFormat<NullWritable, NullWritable> {
    @Override
    public List<InputSplit> getSplits(JobContext context) throws IOException {
      List<InputSplit> splits = new ArrayList<>();
      String[] hosts = context.getConfiguration().getStrings(HOSTS);
      if (hosts == null) {
        throw new InvalidInputException(List.of(new IOException("no hosts")));
      }
      for (String host : hosts) {
        splits.add(new Split(host));
      }
      return splits;
    }

    @Override
    public RecordReader<NullWritable, NullWritable> createRecordReader(
        InputSplit split, TaskAttemptContext context) {
      return new RecordReader<>() {
        private boolean read;

        @Override
        public void initialize(InputSplit split, TaskAttemptContext context) {}

        @Override
        public boolean nextKeyValue() {
          boolean first = !read;
          read = true;
          return first;
        }

        @Override
        public NullWritable getCurrentKey() {
          return NullWritable.get();
        }

        @Override
        public NullWritable getCurrentValue() {
          return NullWritable.get();
        }

        @Override
        public float getProgress() {
          return read ? 1 : 0;
        }

        @Override
        public void close() {}
      };
    }
  }

  public static class Sleeper extends Mapper<NullWritable, NullWritable, NullWritable, NullWritable> {
    @Override
    protected void map(NullWritable key, NullWritable value, Context context)
        throws IOException, InterruptedException {
      Thread.sleep(context.getConfiguration().getLong(MILLIS, 0));
    }
  }

  public static void main(String[] args) throws Exception {
    Configuration conf = new Configuration();
    conf.set("mapreduce.job.queuename", args[0]);
    conf.set(MILLIS, args[1]);
    conf.setStrings(HOSTS, java.util.Arrays.copyOfRange(args, 2, args.length));
    conf.setInt("mapreduce.map.memory.mb", 256);
    conf.set(
        "mapreduce.application.classpath",
        conf.get("mapreduce.application.classpath")
            + ","
            + PlacedJob.class.getProtectionDomain().getCodeSource().getLocation().getPath());
    conf.setBoolean("mapreduce.map.speculative", false);
    Job job = Job.getInstance(conf, "placed");
    job.setJarByClass(PlacedJob.class);
    job.setInputFormatClass(Placed.class);
    job.setMapperClass(Sleeper.class);
    job.setOutputFormatClass(NullOutputFormat.class);
    job.setNumReduceTasks(0);
    boolean ok = job.waitForCompletion(true);
    System.out.println(
        "ran on their hosts: "
            + job.getCounters().findCounter(JobCounter.DATA_LOCAL_MAPS).getValue()
            + " of "
            + job.getCounters().findCounter(JobCounter.TOTAL_LAUNCHED_MAPS).getValue());
    System.exit(ok ? 0 : 1);
  }
}
