// SPDX-License-Identifier: Apache-2.0

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.client.api.AMRMClient;
import org.apache.hadoop.yarn.client.api.NMClient;
import org.apache.hadoop.yarn.conf.YarnConfiguration;

/**
 * A small application master on Hadoop's own libraries: Master N COMMAND runs
 * the command in N containers and ends well when all of them did. It says on
 * standard output what happens.
 */
public class Master {
  public static void main(String[] args) throws Exception {
    int wanted = Integer.parseInt(args[0]);
    AMRMClient<AMRMClient.ContainerRequest> rm = AMRMClient.createAMRMClient();
    YarnConfiguration conf = new YarnConfiguration();
    rm.init(conf);
    rm.start();
    NMClient nodes = NMClient.createNMClient();
    nodes.init(conf);
    nodes.start();
    rm.registerApplicationMaster("localhost", -1, "");
    System.out.println("registered");
    for (int i = 0; i < wanted; i++) {
      rm.addContainerRequest(new AMRMClient.ContainerRequest(
          Resource.newInstance(128, 1), null, null, Priority.newInstance(1)));
    }
    Set<Object> running = new HashSet<>();
    List<String> failed = new ArrayList<>();
    int granted = 0;
    int done = 0;
    while (done < wanted) {
      AllocateResponse answer = rm.allocate((float) done / wanted);
      for (Container c : answer.getAllocatedContainers()) {
        if (granted == wanted) {
          rm.releaseAssignedContainer(c.getId()); // more than was asked for
          continue;
        }
        granted++;
        rm.removeContainerRequest(new AMRMClient.ContainerRequest(
            Resource.newInstance(128, 1), null, null, Priority.newInstance(1)));
        nodes.startContainer(c, ContainerLaunchContext.newInstance(
            Collections.emptyMap(), Collections.emptyMap(),
            Collections.singletonList(args[1]), null, null, null));
        running.add(c.getId());
        System.out.println("started " + c.getId() + " on " + c.getNodeId());
      }
      for (ContainerStatus s : answer.getCompletedContainersStatuses()) {
        if (!running.remove(s.getContainerId())) {
          continue;
        }
        done++;
        System.out.println("ended " + s.getContainerId() + " with " + s.getExitStatus());
        if (s.getExitStatus() != 0) {
          failed.add(s.getDiagnostics());
        }
      }
      Thread.sleep(100);
    }
    rm.unregisterApplicationMaster(
        failed.isEmpty() ? FinalApplicationStatus.SUCCEEDED : FinalApplicationStatus.FAILED,
        String.join("\n", failed), "");
    System.out.println("finished");
    nodes.stop();
    rm.stop();
    System.exit(failed.isEmpty() ? 0 : 1);
  }
}
