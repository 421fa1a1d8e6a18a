// SPDX-License-Identifier: Apache-2.0

import java.net.InetAddress;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.api.protocolrecords.GetApplicationReportRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetNewApplicationRequest;
import org.apache.hadoop.yarn.api.protocolrecords.SubmitApplicationRequest;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.api.records.YarnApplicationState;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.api.protocolrecords.RegisterNodeManagerRequest;
import org.apache.hadoop.yarn.server.resourcemanager.ResourceManager;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.Allocation;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ContainerUpdates;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ResourceScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeUpdateSchedulerEvent;

/**
 * Runs a ResourceManager in this process and calls its scheduler directly: no
 * sockets, no heartbeat intervals. Rounds of asks for 1 GB, half in each of two
 * queues, are placed by going round the nodes, and then released.
 *
 * Arguments: nodes, asks in a round, rounds of warm-up, rounds measured.
 * Prints "allocations N nanoseconds T" for the placing alone, by the processor
 * time of the thread that does it.
 */
public class SchedulerBench {
  public static void main(String[] args) throws Exception {
    int nodes = Integer.parseInt(args[0]), asks = Integer.parseInt(args[1]);
    int warm = Integer.parseInt(args[2]), rounds = Integer.parseInt(args[3]);
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
    ApplicationAttemptId[] apps = {submit(rm, "root.a"), submit(rm, "root.b")};
    long allocated = 0, time = 0;
    int at = 0;
    for (int round = 0; round < warm + rounds; round++) {
      for (ApplicationAttemptId app : apps) {
        ask(scheduler, app, asks / 2, Collections.emptyList());
      }
      java.lang.management.ThreadMXBean clock = java.lang.management.ManagementFactory.getThreadMXBean();
      long before = placed(scheduler, apps), began = clock.getCurrentThreadCpuTime();
      long goal = before + asks;
      while (placed(scheduler, apps) < goal) {
        for (int k = 0; k < 100; k++) {
          scheduler.handle(new NodeUpdateSchedulerEvent(all.get(at)));
          at = (at + 1) % all.size();
        }
      }
      if (round >= warm) {
        time += clock.getCurrentThreadCpuTime() - began;
        allocated += asks;
      }
      for (ApplicationAttemptId app : apps) {
        List<ContainerId> have = new ArrayList<>();
        while (have.size() < asks / 2) {
          Allocation a = ask(scheduler, app, 0, Collections.emptyList());
          for (Container c : a.getContainers()) {
            have.add(c.getId());
          }
          if (a.getContainers().isEmpty()) {
            Thread.sleep(1);
          }
        }
        ask(scheduler, app, 0, have);
      }
      while (placed(scheduler, apps) > before) {
        Thread.sleep(1);
      }
    }
    System.out.println("allocations " + allocated + " nanoseconds " + time);
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }

  static long placed(ResourceScheduler s, ApplicationAttemptId[] apps) {
    long n = 0;
    for (ApplicationAttemptId app : apps) {
      n += s.getAppResourceUsageReport(app).getNumUsedContainers();
    }
    return n;
  }

  static Allocation ask(ResourceScheduler s, ApplicationAttemptId app, int n, List<ContainerId> release) {
    List<ResourceRequest> asks = Collections.singletonList(
        ResourceRequest.newInstance(Priority.newInstance(1), ResourceRequest.ANY, Resource.newInstance(1024, 1), n));
    return s.allocate(app, n > 0 ? asks : Collections.emptyList(), null, release, null, null, new ContainerUpdates());
  }

  static ApplicationAttemptId submit(ResourceManager rm, String queue) throws Exception {
    ApplicationId id = rm.getClientRMService().getNewApplication(GetNewApplicationRequest.newInstance()).getApplicationId();
    ApplicationSubmissionContext c = ApplicationSubmissionContext.newInstance(id, "bench", queue, Priority.newInstance(0),
        ContainerLaunchContext.newInstance(null, null, null, null, null, null), true, false, 1, Resource.newInstance(1024, 1));
    rm.getClientRMService().submitApplication(SubmitApplicationRequest.newInstance(c));
    while (rm.getRMContext().getRMApps().get(id) == null
        || rm.getRMContext().getRMApps().get(id).createApplicationState() != YarnApplicationState.ACCEPTED
        || rm.getRMContext().getRMApps().get(id).getCurrentAppAttempt() == null
        || rm.getRMContext().getRMApps().get(id).getCurrentAppAttempt().getState() != org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttemptState.LAUNCHED) {
      Thread.sleep(20);
    }
    return rm.getRMContext().getRMApps().get(id).getCurrentAppAttempt().getAppAttemptId();
  }
}
