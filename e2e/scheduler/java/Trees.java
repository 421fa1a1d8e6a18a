// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Timer;
import java.util.concurrent.CountDownLatch;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.metrics2.impl.MetricsSystemImpl;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.api.protocolrecords.GetNewApplicationRequest;
import org.apache.hadoop.yarn.api.protocolrecords.SubmitApplicationRequest;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.event.AbstractEvent;
import org.apache.hadoop.yarn.event.EventHandler;
import org.apache.hadoop.yarn.server.api.protocolrecords.RegisterNodeManagerRequest;
import org.apache.hadoop.yarn.server.resourcemanager.ClientRMService;
import org.apache.hadoop.yarn.server.resourcemanager.RMAppManager;
import org.apache.hadoop.yarn.server.resourcemanager.RMContextImpl;
import org.apache.hadoop.yarn.server.resourcemanager.ResourceManager;
import org.apache.hadoop.yarn.server.resourcemanager.monitor.capacity.ProportionalCapacityPreemptionPolicy;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMAppState;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttemptState;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.rmnode.RMNode;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.AbstractYarnScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ContainerUpdates;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.QueueMetrics;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.ResourceScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeAddedSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeRemovedSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.NodeUpdateSchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.event.SchedulerEvent;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.AllocationFileLoaderService;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FairScheduler;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.QueueManager;

/**
 * One ResourceManager whose scheduler is replaced again and again, so that many
 * queue trees need one JVM. Its web services show the scheduler of the moment.
 * Arguments: sizes of nodes, MB:VCORES. Commands are lines on standard
 * input; each has one line as its answer: "ok", or "refused" and the reason. The
 * answers of "fill" and "round" are "ok" and numbers.
 */
public class Trees {
  static class Shown extends ResourceManager {
    volatile ResourceScheduler now;

    @Override
    public ResourceScheduler getResourceScheduler() {
      return now != null ? now : super.getResourceScheduler();
    }

    /** Events of applications reach the scheduler of the moment too. */
    @Override
    protected EventHandler<SchedulerEvent> createSchedulerEventDispatcher() {
      return event -> getResourceScheduler().handle(event);
    }
  }

  static Shown rm = new Shown();
  static RMContextImpl context;
  static List<RMNode> nodes = new ArrayList<>();
  static List<RMNode> added = new ArrayList<>();
  static List<ApplicationId> apps = new ArrayList<>();
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
          reply = "ok" + run(line.split(" "));
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
    context.getDispatcher().register(Mark.class, (EventHandler<Passed>) passed -> passed.latch.countDown());
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

  static String run(String[] words) throws Exception {
    switch (words[0]) {
      case "start":
        begin(words[1]);
        return "";
      case "refresh":
        refresh();
        return "";
      case "nodes":
        for (int i = 0; i < Integer.parseInt(words[1]); i++) {
          rm.now.handle(new NodeAddedSchedulerEvent(nodes.get(i)));
          added.add(nodes.get(i));
        }
        update();
        return "";
      case "app":
        submit(words[1], words[2], Integer.parseInt(words[3]));
        return "";
      case "fill":
        return " " + fill(apps.get(Integer.parseInt(words[1])), nodes.get(Integer.parseInt(words[2])), size(words),
            Integer.parseInt(words[5]));
      case "ask":
        ask(apps.get(Integer.parseInt(words[1])), size(words), Integer.parseInt(words[5]));
        return "";
      case "round":
        return round();
      case "end":
        end();
        return "";
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
    Field manager = ClientRMService.class.getDeclaredField("rmAppManager");
    manager.setAccessible(true);
    Field managed = RMAppManager.class.getDeclaredField("scheduler");
    managed.setAccessible(true);
    managed.set(manager.get(rm.getClientRMService()), next);
    update();
  }

  static Resource size(String[] words) {
    return Resource.newInstance(Long.parseLong(words[3]), Integer.parseInt(words[4]));
  }

  /** Submits an application whose AM is not managed, and waits until it may ask for containers. */
  static void submit(String queue, String user, int priority) throws Exception {
    ApplicationId id =
        rm.getClientRMService().getNewApplication(GetNewApplicationRequest.newInstance()).getApplicationId();
    ApplicationSubmissionContext c = ApplicationSubmissionContext.newInstance(
        id, "drawn", queue, Priority.newInstance(priority),
        ContainerLaunchContext.newInstance(null, null, null, null, null, null), true, false, 1,
        Resource.newInstance(128, 1));
    UserGroupInformation.createRemoteUser(user).doAs((java.security.PrivilegedExceptionAction<Object>) () ->
        rm.getClientRMService().submitApplication(SubmitApplicationRequest.newInstance(c)));
    RMApp app = context.getRMApps().get(id);
    while (app.getCurrentAppAttempt() == null
        || app.getCurrentAppAttempt().getState() != RMAppAttemptState.LAUNCHED) {
      if (app.getState() == RMAppState.FAILED) {
        throw new IllegalStateException(app.getDiagnostics().toString());
      }
      Thread.sleep(1);
    }
    apps.add(id);
  }

  static void ask(ApplicationId id, Resource size, int count) {
    List<ResourceRequest> asks = Collections.singletonList(
        ResourceRequest.newInstance(Priority.newInstance(1), ResourceRequest.ANY, size, count));
    rm.now.allocate(context.getRMApps().get(id).getCurrentAppAttempt().getAppAttemptId(), asks, null,
        Collections.emptyList(), null, null, new ContainerUpdates());
  }

  /** Allocates containers on a node, and returns how many an application has got. */
  static int fill(ApplicationId id, RMNode node, Resource size, int count) {
    int before = held(id);
    ask(id, size, count);
    rm.now.handle(new NodeUpdateSchedulerEvent(node));
    ask(id, size, 0);
    return held(id) - before;
  }

  static int held(ApplicationId id) {
    return ((CapacityScheduler) rm.now).getSchedulerApplications().get(id).getCurrentAppAttempt()
        .getLiveContainers().size();
  }

  /** Runs one round of preemption; the numbers are the containers, MB and vcores that each application would lose. */
  static String round() {
    CapacityScheduler scheduler = (CapacityScheduler) rm.now;
    ProportionalCapacityPreemptionPolicy policy = new ProportionalCapacityPreemptionPolicy();
    policy.init(new YarnConfiguration(), context, scheduler);
    policy.editSchedule();
    long[][] lost = new long[apps.size()][3];
    for (RMContainer c : policy.getToPreemptContainers().keySet()) {
      long[] of = lost[apps.indexOf(c.getApplicationAttemptId().getApplicationId())];
      of[0]++;
      of[1] += c.getAllocatedResource().getMemorySize();
      of[2] += c.getAllocatedResource().getVirtualCores();
    }
    StringBuilder text = new StringBuilder();
    for (long[] of : lost) {
      text.append(' ').append(of[0]).append(' ').append(of[1]).append(' ').append(of[2]);
    }
    return text.toString();
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

  enum Mark { PASSED }

  static class Passed extends AbstractEvent<Mark> {
    final CountDownLatch latch = new CountDownLatch(1);

    Passed() {
      super(Mark.PASSED);
    }
  }

  /** Waits until the dispatcher has handled its events, those that they caused, and those that these caused. */
  static void settle() throws Exception {
    for (int i = 0; i < 3; i++) {
      Passed passed = new Passed();
      context.getDispatcher().getEventHandler().handle(passed);
      passed.latch.await();
    }
  }

  static void end() throws Exception {
    for (RMNode node : added) {
      rm.now.handle(new NodeRemovedSchedulerEvent(node));
    }
    added.clear();
    settle();
    for (ApplicationId id : apps) {
      context.getRMApps().remove(id);
    }
    apps.clear();
    ((AbstractYarnScheduler<?, ?>) rm.now).stop();
    // A timer of the stopped scheduler would refer to it for the expiry interval of nodes.
    Field timer = AbstractYarnScheduler.class.getDeclaredField("releaseCache");
    timer.setAccessible(true);
    if (timer.get(rm.now) != null) {
      ((Timer) timer.get(rm.now)).cancel();
    }
  }
}
