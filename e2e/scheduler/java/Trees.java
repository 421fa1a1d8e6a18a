// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Timer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.metrics2.impl.MetricsSystemImpl;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.api.protocolrecords.RegisterNodeManagerRequest;
import org.apache.hadoop.yarn.server.resourcemanager.ClientRMService;
import org.apache.hadoop.yarn.server.resourcemanager.RMContextImpl;
import org.apache.hadoop.yarn.server.resourcemanager.ResourceManager;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.AbstractYarnScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.QueueMetrics;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ResourceScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeAddedSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeRemovedSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.AllocationFileLoaderService;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FairScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.QueueManager;

/**
 * One ResourceManager whose scheduler is replaced again and again, so that many
 * queue trees need one JVM. Its web services show the scheduler of the moment.
 * Arguments: sizes of nodes, MB:VCORES. Commands are lines on standard
 * input; each has one line as its answer: "ok", or "refused" and the reason.
 */
public class Trees {
  static class Shown extends ResourceManager {
    volatile ResourceScheduler now;

    @Override
    public ResourceScheduler getResourceScheduler() {
      return now != null ? now : super.getResourceScheduler();
    }
  }

  static Shown rm = new Shown();
  static RMContextImpl context;
  static List<RMNode> nodes = new ArrayList<>();
  static List<RMNode> added = new ArrayList<>();
  static PrintStream out = System.out;

  public static void main(String[] args) {
    System.setOut(System.err);
    try {
      start(args);
      answer("ok");
      BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        String reply;
        try {
          run(line.split(" "));
          reply = "ok";
        } catch (Throwable e) {
          StringBuilder text = new StringBuilder("refused");
          for (Throwable cause = e; cause != null; cause = cause.getCause()) {
            text.append(' ').append(cause.toString().replace('\n', ' '));
          }
          reply = text.toString();
        }
        answer(reply);
      }
      Runtime.getRuntime().halt(0);
    } catch (Throwable e) {
      e.printStackTrace();
      Runtime.getRuntime().halt(1); // the ResourceManager's threads would go on
    }
  }

  static void answer(String line) {
    out.println("= " + line);
    out.flush();
  }

  static void start(String[] sizes) throws Exception {
    DefaultMetricsSystem.setMiniClusterMode(true);
    rm.init(new YarnConfiguration());
    rm.start();
    DefaultMetricsSystem.instance().stop(); // its timer refers to the queues of all trees
    context = (RMContextImpl) rm.getRMContext();
    ResourceScheduler first = rm.getResourceScheduler();
    List<NodeId> ids = new ArrayList<>();
    for (String size : sizes) {
      String[] part = size.split(":");
      NodeId id = NodeId.newInstance("127.0.0." + (ids.size() + 2), 1);
      ids.add(id);
      rm.getResourceTrackerService().registerNodeManager(RegisterNodeManagerRequest.newInstance(
          id, 1, Resource.newInstance(Long.parseLong(part[0]), Integer.parseInt(part[1])), "3.4.2",
          new ArrayList<>(), new ArrayList<>(), null));
    }
    while (first.getNumClusterNodes() < sizes.length) {
      Thread.sleep(20);
    }
    for (NodeId id : ids) {
      RMNode node = context.getRMNodes().get(id);
      nodes.add(node);
      first.handle(new NodeRemovedSchedulerEvent(node));
    }
  }

  static void run(String[] words) throws Exception {
    switch (words[0]) {
      case "start":
        begin(words[1]);
        return;
      case "refresh":
        refresh();
        return;
      case "nodes":
        for (int i = 0; i < Integer.parseInt(words[1]); i++) {
          rm.now.handle(new NodeAddedSchedulerEvent(nodes.get(i)));
          added.add(nodes.get(i));
        }
        update();
        return;
      case "end":
        end();
        return;
      default:
        throw new IllegalArgumentException(words[0]);
    }
  }

  static void begin(String store) throws Exception {
    QueueMetrics.clearQueueMetrics();
    // Sources of metrics are never removed, and each refers to the configuration of its tree.
    DefaultMetricsSystem.setInstance(new MetricsSystemImpl());
    Configuration conf = new YarnConfiguration();
    conf.set(YarnConfiguration.SCHEDULER_CONFIGURATION_STORE_CLASS, store);
    AbstractYarnScheduler<?, ?> next;
    if (conf.get(YarnConfiguration.RM_SCHEDULER, "").endsWith("FairScheduler")) {
      FairScheduler fair = new FairScheduler();
      fair.setRMContext(context);
      next = fair;
    } else {
      CapacityScheduler capacity = new CapacityScheduler();
      capacity.setConf(conf);
      capacity.setRMContext(context);
      next = capacity;
    }
    context.setScheduler(next);
    rm.now = next;
    next.init(conf);
    Field clients = ClientRMService.class.getDeclaredField("scheduler");
    clients.setAccessible(true);
    clients.set(rm.getClientRMService(), next);
    update();
  }

  /** Reads the file of queues again. FairScheduler itself only logs that a file is refused. */
  static void refresh() throws Exception {
    if (rm.now instanceof FairScheduler) {
      Field loader = FairScheduler.class.getDeclaredField("allocsLoader");
      loader.setAccessible(true);
      ((AllocationFileLoaderService) loader.get(rm.now)).reloadAllocations();
      QueueManager queues = ((FairScheduler) rm.now).getQueueManager();
      queues.removeEmptyDynamicQueues();
      queues.removePendingIncompatibleQueues();
      update();
      return;
    }
    rm.now.reinitialize(new YarnConfiguration(), context);
  }

  /** Does the work of FairScheduler's thread, which is not started. */
  static void update() {
    if (rm.now instanceof FairScheduler) {
      ((FairScheduler) rm.now).update();
    }
  }

  static void end() throws Exception {
    for (RMNode node : added) {
      rm.now.handle(new NodeRemovedSchedulerEvent(node));
    }
    added.clear();
    ((AbstractYarnScheduler<?, ?>) rm.now).stop();
    // A timer of the stopped scheduler would refer to it for the expiry interval of nodes.
    Field timer = AbstractYarnScheduler.class.getDeclaredField("releaseCache");
    timer.setAccessible(true);
    if (timer.get(rm.now) != null) {
      ((Timer) timer.get(rm.now)).cancel();
    }
  }
}
