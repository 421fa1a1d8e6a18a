// SPDX-License-Identifier: Apache-2.0

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.ipc.CallerContext;
import org.apache.hadoop.net.NetUtils;
import org.apache.hadoop.security.SecurityUtil;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.yarn.api.protocolrecords.ReservationDeleteRequest;
import org.apache.hadoop.yarn.api.protocolrecords.ReservationListRequest;
import org.apache.hadoop.yarn.api.protocolrecords.ReservationSubmissionRequest;
import org.apache.hadoop.yarn.api.protocolrecords.ReservationUpdateRequest;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationReport;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.NodeReport;
import org.apache.hadoop.yarn.api.records.QueueInfo;
import org.apache.hadoop.yarn.api.records.ReservationAllocationState;
import org.apache.hadoop.yarn.api.records.ReservationDefinition;
import org.apache.hadoop.yarn.api.records.ReservationId;
import org.apache.hadoop.yarn.api.records.ReservationRequest;
import org.apache.hadoop.yarn.api.records.ReservationRequestInterpreter;
import org.apache.hadoop.yarn.api.records.ReservationRequests;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.YarnClusterMetrics;
import org.apache.hadoop.yarn.client.api.YarnClient;
import org.apache.hadoop.yarn.client.api.YarnClientApplication;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.security.client.RMDelegationTokenIdentifier;
import org.apache.hadoop.yarn.util.ConverterUtils;

/**
 * Hadoop's YarnClient, driven by commands and answering in JSON lines: one
 * line per command, {"call":...,"ok":true,...} or
 * {"call":...,"ok":false,"class":...,"message":...,"cause":[...]}.
 * Commands come as arguments, or one a line on standard input.
 */
public class YarnDriver {
  private static final ObjectMapper JSON = new ObjectMapper();

  private interface Call {
    void into(Map<String, Object> answer) throws Exception;
  }

  private static Token<RMDelegationTokenIdentifier> delegation;

  public static void main(String[] args) throws Exception {
    if (System.getenv("CALLER_CONTEXT") != null) {
      CallerContext.setCurrent(new CallerContext.Builder(System.getenv("CALLER_CONTEXT")).build());
    }
    YarnClient client = YarnClient.createYarnClient();
    client.init(new YarnConfiguration());
    client.start();
    if (args.length > 0) {
      run(client, args);
    } else {
      BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        run(client, line.trim().split(" +"));
      }
    }
    client.stop();
  }

  private static void run(YarnClient client, String[] args) throws Exception {
    switch (args[0]) {
      case "metrics":
        answer("metrics", a -> {
          YarnClusterMetrics m = client.getYarnClusterMetrics();
          a.put("nodes", m.getNumNodeManagers());
          a.put("active", m.getNumActiveNodeManagers());
        });
        return;
      case "new":
        answer("new", a -> {
          YarnClientApplication app = client.createApplication();
          a.put("id", app.getNewApplicationResponse().getApplicationId().toString());
          Resource most = app.getNewApplicationResponse().getMaximumResourceCapability();
          a.put("memory", most.getMemorySize());
          a.put("vcores", most.getVirtualCores());
        });
        return;
      case "report":
        for (String id : Arrays.copyOfRange(args, 1, args.length)) {
          answer("report " + id, a -> report(a, client.getApplicationReport(ApplicationId.fromString(id))));
        }
        return;
      case "list":
        answer("list", a -> {
          List<Object> all = new ArrayList<>();
          for (ApplicationReport r : client.getApplications()) {
            Map<String, Object> one = new LinkedHashMap<>();
            report(one, r);
            all.add(one);
          }
          a.put("applications", all);
        });
        return;
      case "nodes":
        answer("nodes", a -> {
          List<Object> all = new ArrayList<>();
          for (NodeReport r : client.getNodeReports()) {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("id", r.getNodeId().toString());
            one.put("state", r.getNodeState().toString());
            one.put("memory", r.getCapability().getMemorySize());
            one.put("vcores", r.getCapability().getVirtualCores());
            one.put("containers", r.getNumContainers());
            all.add(one);
          }
          a.put("nodes", all);
        });
        return;
      case "queue":
        answer("queue " + args[1], a -> {
          QueueInfo q = client.getQueueInfo(args[1]);
          if (q == null) {
            a.put("found", false);
            return;
          }
          a.put("found", true);
          a.put("name", q.getQueueName());
          a.put("capacity", q.getCapacity());
          a.put("maximum", q.getMaximumCapacity());
          a.put("state", q.getQueueState().toString());
        });
        return;
      case "kill":
        answer("kill " + args[1], a -> client.killApplication(ApplicationId.fromString(args[1])));
        return;
      case "delegate": // delegate RENEWER: takes a delegation token, for the next three
        answer("delegate", a -> {
          YarnConfiguration conf = new YarnConfiguration(client.getConfig());
          delegation = ConverterUtils.convertFromYarn(client.getRMDelegationToken(new Text(args[1])),
              conf.getSocketAddr(YarnConfiguration.RM_ADDRESS, "", YarnConfiguration.DEFAULT_RM_PORT));
          RMDelegationTokenIdentifier id = delegation.decodeIdentifier();
          a.put("user", id.getOwner().toString());
          a.put("name", id.getRenewer().toString());
          a.put("ms", id.getMaxDate() - id.getIssueDate());
        });
        return;
      case "by-token": // by-token USER APPLICATION: a report for a new login of which only the token is believed
        answer("by-token " + args[2], a -> {
          UserGroupInformation login = UserGroupInformation.createRemoteUser(args[1]);
          login.addToken(delegation);
          login.doAs((PrivilegedExceptionAction<Void>) () -> {
            YarnClient other = YarnClient.createYarnClient();
            other.init(new YarnConfiguration(client.getConfig()));
            other.start();
            try {
              report(a, other.getApplicationReport(ApplicationId.fromString(args[2])));
            } finally {
              other.stop();
            }
            return null;
          });
        });
        return;
      case "to": // to HOST:PORT: the next three go to that server, with the same token
        answer("to " + args[1], a -> {
          client.getConfig().set(YarnConfiguration.RM_ADDRESS, args[1]);
          delegation.setService(SecurityUtil.buildTokenService(NetUtils.createSocketAddr(args[1])));
        });
        return;
      case "renew":
        answer("renew", a -> a.put("progress", (delegation.renew(client.getConfig()) - System.currentTimeMillis()) / 1000.0));
        return;
      case "cancel":
        answer("cancel", a -> delegation.cancel(client.getConfig()));
        return;
      case "profiles":
        answer("profiles", a -> a.put("profiles", client.getResourceProfiles().size()));
        return;
      case "types":
        answer("types", a -> {
          List<String> names = new ArrayList<>();
          client.getResourceTypeInfo().forEach(t -> names.add(t.getName()));
          a.put("types", names);
        });
        return;
      case "new-reservation":
        answer("new-reservation", a -> a.put("id", client.createReservation().getReservationId().toString()));
        return;
      case "reserve": { // reserve QUEUE CONTAINERS SECONDS: containers of 256 MB, together, at some time within an hour
        answer("reserve", a -> {
          ReservationId id = client.createReservation().getReservationId();
          a.put("id", id.toString());
          client.submitReservation(ReservationSubmissionRequest.newInstance(definition(args[2], args[3]), args[1], id));
        });
        return;
      }
      case "reserve-anew": // reserve-anew RESERVATION CONTAINERS SECONDS
        answer("reserve-anew", a -> client.updateReservation(
            ReservationUpdateRequest.newInstance(definition(args[2], args[3]), ReservationId.parseReservationId(args[1]))));
        return;
      case "unreserve":
        answer("unreserve", a -> client.deleteReservation(
            ReservationDeleteRequest.newInstance(ReservationId.parseReservationId(args[1]))));
        return;
      case "reserved": // reserved QUEUE [RESERVATION]: how many containers each reservation of the queue's plan asks for
        answer("reserved", a -> {
          Map<String, Object> containers = new LinkedHashMap<>();
          for (ReservationAllocationState r : client.listReservations(ReservationListRequest.newInstance(
              args[1], args.length > 2 ? args[2] : "", true)).getReservationAllocationState()) {
            containers.put(r.getReservationId().toString(), r.getReservationDefinition().getReservationRequests()
                .getReservationResources().get(0).getNumContainers());
          }
          a.put("containers", containers);
        });
        return;
      case "submit-in": // submit-in RESERVATION QUEUE
        answer("submit-in", a -> {
          ApplicationSubmissionContext c = client.createApplication().getApplicationSubmissionContext();
          c.setQueue(args[2]);
          c.setReservationID(ReservationId.parseReservationId(args[1]));
          c.setResource(Resource.newInstance(256, 1));
          c.setAMContainerSpec(ContainerLaunchContext.newInstance(null, null, Arrays.asList("sleep 3600"), null, null, null));
          a.put("id", client.submitApplication(c).toString());
        });
        return;
      case "parallel": {
        // parallel CALLS THREADS APPLICATION: every call asks for a report.
        int calls = Integer.parseInt(args[1]);
        ApplicationId id = ApplicationId.fromString(args[3]);
        ExecutorService pool = Executors.newFixedThreadPool(Integer.parseInt(args[2]));
        try {
          answer("parallel", a -> {
            List<Future<String>> all = new ArrayList<>();
            for (int i = 0; i < calls; i++) {
              all.add(pool.submit(() -> client.getApplicationReport(id).getName()));
            }
            Map<String, Integer> names = new LinkedHashMap<>();
            for (Future<String> f : all) {
              names.merge(f.get(), 1, Integer::sum);
            }
            a.put("names", names);
          });
        } finally {
          pool.shutdown();
        }
        return;
      }
      default:
        throw new IllegalArgumentException("unknown command " + args[0]);
    }
  }

  private static ReservationDefinition definition(String containers, String seconds) {
    int n = Integer.parseInt(containers);
    long now = System.currentTimeMillis();
    ReservationRequest request =
        ReservationRequest.newInstance(Resource.newInstance(256, 1), n, n, 1000L * Integer.parseInt(seconds));
    return ReservationDefinition.newInstance(now, now + 3600000L,
        ReservationRequests.newInstance(Arrays.asList(request), ReservationRequestInterpreter.R_ALL), "made by a test");
  }

  private static void report(Map<String, Object> a, ApplicationReport r) {
    a.put("id", r.getApplicationId().toString());
    a.put("name", r.getName());
    a.put("user", r.getUser());
    a.put("queue", r.getQueue());
    a.put("type", r.getApplicationType());
    a.put("state", String.valueOf(r.getYarnApplicationState()));
    a.put("final", String.valueOf(r.getFinalApplicationStatus()));
    a.put("diagnostics", r.getDiagnostics());
    a.put("host", r.getHost());
    a.put("tracking", r.getTrackingUrl());
    a.put("progress", r.getProgress());
  }

  private static void answer(String call, Call f) throws Exception {
    Map<String, Object> a = new LinkedHashMap<>();
    a.put("call", call);
    long start = System.nanoTime();
    try {
      f.into(a);
      a.put("ok", true);
    } catch (Throwable e) {
      a.put("ok", false);
      a.put("class", e.getClass().getName());
      a.put("message", String.valueOf(e.getMessage()));
      List<String> causes = new ArrayList<>();
      for (Throwable c = e.getCause(); c != null && causes.size() < 10; c = c.getCause()) {
        causes.add(c.getClass().getName());
      }
      a.put("causes", causes);
    }
    a.putIfAbsent("ms", (System.nanoTime() - start) / 1000000);
    System.out.println(JSON.writeValueAsString(a));
    System.out.flush();
  }
}
