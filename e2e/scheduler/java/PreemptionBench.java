// SPDX-License-Identifier: Apache-2.0

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.api.protocolrecords.GetNewApplicationRequest;
import org.apache.hadoop.yarn.api.protocolrecords.SubmitApplicationRequest;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.api.protocolrecords.RegisterNodeManagerRequest;
import org.apache.hadoop.yarn.server.resourcemanager.ResourceManager;
import org.apache.hadoop.yarn.server.resourcemanager.monitor.capacity.ProportionalCapacityPreemptionPolicy;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttemptState;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ContainerUpdates;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ResourceScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacitySchedulerConfiguration;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeUpdateSchedulerEvent;

/**
 * Runs a ResourceManager in this process and calls CapacityScheduler's preemption
 * policy directly. Nodes of 128 GB are full of containers of 1 GB of every second
 * queue; then the other queues ask for their half, or nobody does.
 *
 * Arguments: nodes, queues, whether they ask, rounds of warm-up, rounds measured.
 * Prints "rounds N victims V nanoseconds T": what the last round chose, and the
 * processor time of the thread that calls the policy.
 */
public class PreemptionBench {
  public static void main(String[] args) {
    try {
      run(args);
      Runtime.getRuntime().halt(0);
    } catch (Throwable e) {
      e.printStackTrace();
      Runtime.getRuntime().halt(1); // the ResourceManager's threads would go on
    }
  }

  static void run(String[] args) throws Exception {
    int nodes = Integer.parseInt(args[0]), queues = Integer.parseInt(args[1]);
    boolean asking = Boolean.parseBoolean(args[2]);
    int warm = Integer.parseInt(args[3]), rounds = Integer.parseInt(args[4]);
    Configuration conf = new YarnConfiguration();
    ResourceManager rm = new ResourceManager();
    rm.init(conf);
    rm.start();
    ResourceScheduler scheduler = rm.getResourceScheduler();
    for (int i = 0; i < nodes; i++) {
      NodeId id = NodeId.newInstance("127.1." + i / 250 + "." + (i % 250 + 1), 1);
      rm.getResourceTrackerService().registerNodeManager(RegisterNodeManagerRequest.newInstance(
          id, 1, Resource.newInstance(128 << 10, 128), "3.4.2", new ArrayList<>(), new ArrayList<>(), null));
    }
    while (scheduler.getNumClusterNodes() < nodes) {
      Thread.sleep(20);
    }
    List<RMNode> all = new ArrayList<>(rm.getRMContext().getRMNodes().values());
    List<ApplicationId> apps = new ArrayList<>();
    for (int i = 0; i < queues; i++) {
      apps.add(submit(rm, "root.q" + i));
    }
    List<ApplicationAttemptId> attempts = new ArrayList<>();
    for (ApplicationId id : apps) {
      attempts.add(launched(rm, id));
    }
    int each = nodes * 128 / (queues / 2);
    for (int i = 0; i < queues; i += 2) {
      ask(scheduler, attempts.get(i), each);
    }
    long full = (long) each * (queues / 2);
    for (int at = 0; scheduler.getRootQueueMetrics().getAllocatedContainers() < full; at++) {
      scheduler.handle(new NodeUpdateSchedulerEvent(all.get(at % all.size())));
    }
    for (int i = 1; asking && i < queues; i += 2) {
      ask(scheduler, attempts.get(i), each / 2);
    }
    ProportionalCapacityPreemptionPolicy policy = new ProportionalCapacityPreemptionPolicy();
    policy.init(conf, rm.getRMContext(), scheduler);
    for (int i = 0; i < warm; i++) {
      policy.editSchedule();
    }
    ThreadMXBean clock = ManagementFactory.getThreadMXBean();
    long began = clock.getCurrentThreadCpuTime();
    for (int i = 0; i < rounds; i++) {
      policy.editSchedule();
    }
    long time = clock.getCurrentThreadCpuTime() - began;
    System.out.println("rounds " + rounds + " victims " + chosen(conf, rm) + " nanoseconds " + time);
    System.out.flush();
  }

  /**
   * What a round chooses. One that only observes tells nobody, so this is another policy's,
   * and tells the masters; nothing is killed for days.
   */
  static int chosen(Configuration conf, ResourceManager rm) {
    CapacityScheduler scheduler = (CapacityScheduler) rm.getResourceScheduler();
    scheduler.getConfiguration().setBoolean(CapacitySchedulerConfiguration.PREEMPTION_OBSERVE_ONLY, false);
    scheduler.getConfiguration().setLong(CapacitySchedulerConfiguration.PREEMPTION_WAIT_TIME_BEFORE_KILL, 1 << 30);
    ProportionalCapacityPreemptionPolicy policy = new ProportionalCapacityPreemptionPolicy();
    policy.init(conf, rm.getRMContext(), scheduler);
    policy.editSchedule();
    return policy.getToPreemptContainers().size();
  }

  static void ask(ResourceScheduler s, ApplicationAttemptId app, int n) {
    List<ResourceRequest> asks = Collections.singletonList(
        ResourceRequest.newInstance(Priority.newInstance(1), ResourceRequest.ANY, Resource.newInstance(1024, 1), n));
    s.allocate(app, asks, null, Collections.emptyList(), null, null, new ContainerUpdates());
  }

  static ApplicationId submit(ResourceManager rm, String queue) throws Exception {
    ApplicationId id = rm.getClientRMService().getNewApplication(GetNewApplicationRequest.newInstance()).getApplicationId();
    ApplicationSubmissionContext c = ApplicationSubmissionContext.newInstance(id, "bench", queue, Priority.newInstance(0),
        ContainerLaunchContext.newInstance(null, null, null, null, null, null), true, false, 1, Resource.newInstance(1024, 1));
    rm.getClientRMService().submitApplication(SubmitApplicationRequest.newInstance(c));
    return id;
  }

  static ApplicationAttemptId launched(ResourceManager rm, ApplicationId id) throws Exception {
    while (true) {
      RMApp app = rm.getRMContext().getRMApps().get(id);
      if (app != null && app.getCurrentAppAttempt() != null
          && app.getCurrentAppAttempt().getState() == RMAppAttemptState.LAUNCHED) {
        return app.getCurrentAppAttempt().getAppAttemptId();
      }
      Thread.sleep(5);
    }
  }
}
