// SPDX-License-Identifier: Apache-2.0

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import javax.crypto.SecretKey;
import org.apache.hadoop.io.DataOutputBuffer;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.WritableUtils;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.token.SecretManager;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.security.token.TokenIdentifier;
import org.apache.hadoop.security.token.delegation.DelegationKey;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerState;
import org.apache.hadoop.yarn.api.records.ExecutionType;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.NodeId;
import org.apache.hadoop.yarn.api.records.NodeState;
import org.apache.hadoop.yarn.api.records.QueueState;
import org.apache.hadoop.yarn.api.records.ReservationId;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.YarnApplicationAttemptState;
import org.apache.hadoop.yarn.api.records.YarnApplicationState;
import org.apache.hadoop.yarn.api.records.impl.pb.ProtoUtils;
import org.apache.hadoop.yarn.security.AMRMTokenIdentifier;
import org.apache.hadoop.yarn.security.ContainerTokenIdentifier;
import org.apache.hadoop.yarn.security.NMTokenIdentifier;
import org.apache.hadoop.yarn.security.client.ClientToAMTokenIdentifier;
import org.apache.hadoop.yarn.security.client.RMDelegationTokenIdentifier;

/**
 * Hadoop's own classes of tokens and records, driven by commands on standard input, one a line,
 * each answered by one JSON line. Bytes are hexadecimal.
 *
 *   read KIND IDENTIFIER KEY   the identifier's fields, its bytes written again, and its password under the key
 *   delegation OWNER RENEWER REALUSER ISSUED MAX SEQUENCE KEYID KEY    one that Hadoop makes ("-" is empty)
 *   key BYTES                  a DelegationKey
 *   token URLSTRING            a token of its text form
 *   credentials BYTES          a token file; answers its tokens, and both of its forms written by Hadoop
 *   vlong NUMBER ...           the numbers as WritableUtils writes them
 *   text KIND STRING           an id read from its text and printed again
 *   resource MEMORY VCORES [NAME=VALUE ...]    a resource as it is printed
 *   states                     the states of each kind, in the order of their numbers on the wire
 */
public class TokenTool {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final HexFormat HEX = HexFormat.of();

  /** Gives createPassword, which is protected. */
  private static final class Secrets extends SecretManager<TokenIdentifier> {
    static byte[] password(byte[] identifier, byte[] key) {
      SecretKey k = createSecretKey(key);
      return createPassword(identifier, k);
    }

    @Override
    protected byte[] createPassword(TokenIdentifier identifier) {
      throw new UnsupportedOperationException();
    }

    @Override
    public byte[] retrievePassword(TokenIdentifier identifier) {
      throw new UnsupportedOperationException();
    }

    @Override
    public TokenIdentifier createIdentifier() {
      throw new UnsupportedOperationException();
    }
  }

  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      Map<String, Object> a = new LinkedHashMap<>();
      try {
        run(a, line.trim().split(" "));
      } catch (Throwable e) {
        a.put("error", String.valueOf(e));
      }
      System.out.println(JSON.writeValueAsString(a));
      System.out.flush();
    }
  }

  private static void run(Map<String, Object> a, String[] c) throws Exception {
    switch (c[0]) {
      case "read": {
        byte[] bytes = HEX.parseHex(c[2]);
        TokenIdentifier id = identifier(c[1]);
        id.readFields(new DataInputStream(new ByteArrayInputStream(bytes)));
        a.put("kind", id.getKind().toString());
        a.put("user", id.getUser() == null ? "" : id.getUser().getUserName());
        a.put("again", HEX.formatHex(id.getBytes()));
        a.put("password", HEX.formatHex(Secrets.password(bytes, HEX.parseHex(c[3]))));
        fields(a, id);
        return;
      }
      case "delegation": {
        RMDelegationTokenIdentifier id = new RMDelegationTokenIdentifier(text(c[1]), text(c[2]), text(c[3]));
        id.setIssueDate(Long.parseLong(c[4]));
        id.setMaxDate(Long.parseLong(c[5]));
        id.setSequenceNumber(Integer.parseInt(c[6]));
        id.setMasterKeyId(Integer.parseInt(c[7]));
        a.put("again", HEX.formatHex(id.getBytes()));
        a.put("password", HEX.formatHex(Secrets.password(id.getBytes(), HEX.parseHex(c[8]))));
        return;
      }
      case "key": {
        DelegationKey k = new DelegationKey();
        k.readFields(new DataInputStream(new ByteArrayInputStream(HEX.parseHex(c[1]))));
        a.put("keyId", k.getKeyId());
        a.put("max", k.getExpiryDate());
        a.put("password", HEX.formatHex(k.getEncodedKey()));
        DataOutputBuffer out = new DataOutputBuffer();
        k.write(out);
        a.put("again", HEX.formatHex(out.getData(), 0, out.getLength()));
        return;
      }
      case "token": {
        Token<TokenIdentifier> t = new Token<>();
        t.decodeFromUrlString(c[1]);
        token(a, t);
        a.put("again", t.encodeToUrlString());
        return;
      }
      case "credentials": {
        Credentials all = new Credentials();
        all.readTokenStorageStream(new DataInputStream(new ByteArrayInputStream(HEX.parseHex(c[1]))));
        List<Object> tokens = new ArrayList<>();
        for (Map.Entry<Text, Token<? extends TokenIdentifier>> e : all.getTokenMap().entrySet()) {
          Map<String, Object> one = new LinkedHashMap<>();
          one.put("alias", e.getKey().toString());
          token(one, e.getValue());
          tokens.add(one);
        }
        a.put("tokens", tokens);
        for (Credentials.SerializedFormat form : Credentials.SerializedFormat.values()) {
          DataOutputBuffer out = new DataOutputBuffer();
          all.writeTokenStorageToStream(out, form);
          a.put(form.name().toLowerCase(), HEX.formatHex(out.getData(), 0, out.getLength()));
        }
        return;
      }
      case "vlong": {
        DataOutputBuffer out = new DataOutputBuffer();
        for (int i = 1; i < c.length; i++) {
          WritableUtils.writeVLong(out, Long.parseLong(c[i]));
        }
        a.put("again", HEX.formatHex(out.getData(), 0, out.getLength()));
        return;
      }
      case "text":
        a.put("again", printed(c[1], c[2]));
        return;
      case "resource": {
        Map<String, Long> others = new LinkedHashMap<>();
        for (int i = 3; i < c.length; i++) {
          others.put(c[i].substring(0, c[i].indexOf('=')), Long.parseLong(c[i].substring(c[i].indexOf('=') + 1)));
        }
        a.put("again", Resource.newInstance(Long.parseLong(c[1]), Integer.parseInt(c[2]), others).toString());
        return;
      }
      case "states": {
        Map<String, Object> all = new LinkedHashMap<>();
        for (YarnApplicationState s : YarnApplicationState.values()) {
          all.put("application " + ProtoUtils.convertToProtoFormat(s).getNumber(), s.toString());
        }
        for (YarnApplicationAttemptState s : YarnApplicationAttemptState.values()) {
          all.put("attempt " + ProtoUtils.convertToProtoFormat(s).getNumber(), s.toString());
        }
        for (ContainerState s : ContainerState.values()) {
          all.put("container " + ProtoUtils.convertToProtoFormat(s).getNumber(), s.toString());
        }
        for (NodeState s : NodeState.values()) {
          all.put("node " + ProtoUtils.convertToProtoFormat(s).getNumber(), s.toString());
        }
        for (FinalApplicationStatus s : FinalApplicationStatus.values()) {
          all.put("final " + ProtoUtils.convertToProtoFormat(s).getNumber(), s.toString());
        }
        for (QueueState s : QueueState.values()) {
          all.put("queue " + ProtoUtils.convertToProtoFormat(s).getNumber(), s.toString());
        }
        for (ExecutionType s : ExecutionType.values()) {
          all.put("execution " + ProtoUtils.convertToProtoFormat(s).getNumber(), s.toString());
        }
        a.put("states", all);
        return;
      }
      default:
        throw new IllegalArgumentException("unknown command " + c[0]);
    }
  }

  private static String printed(String kind, String s) throws Exception {
    switch (kind) {
      case "application":
        return ApplicationId.fromString(s).toString();
      case "attempt":
        return ApplicationAttemptId.fromString(s).toString();
      case "container":
        return ContainerId.fromString(s).toString();
      case "node":
        return NodeId.fromString(s).toString();
      case "reservation":
        return ReservationId.parseReservationId(s).toString();
      default:
        throw new IllegalArgumentException("unknown kind " + kind);
    }
  }

  private static Text text(String s) {
    return s.equals("-") ? new Text() : new Text(s);
  }

  private static void token(Map<String, Object> a, Token<?> t) {
    a.put("kind", t.getKind().toString());
    a.put("service", t.getService().toString());
    a.put("identifier", HEX.formatHex(t.getIdentifier()));
    a.put("password", HEX.formatHex(t.getPassword()));
  }

  private static TokenIdentifier identifier(String kind) {
    switch (kind) {
      case "RM_DELEGATION_TOKEN":
        return new RMDelegationTokenIdentifier();
      case "YARN_AM_RM_TOKEN":
        return new AMRMTokenIdentifier();
      case "NMToken":
        return new NMTokenIdentifier();
      case "ContainerToken":
        return new ContainerTokenIdentifier();
      case "YARN_CLIENT_TOKEN":
        return new ClientToAMTokenIdentifier();
      default:
        throw new IllegalArgumentException("unknown kind " + kind);
    }
  }

  private static void fields(Map<String, Object> a, TokenIdentifier id) {
    if (id instanceof RMDelegationTokenIdentifier) {
      RMDelegationTokenIdentifier d = (RMDelegationTokenIdentifier) id;
      a.put("owner", d.getOwner().toString());
      a.put("renewer", d.getRenewer().toString());
      a.put("realUser", d.getRealUser().toString());
      a.put("issued", d.getIssueDate());
      a.put("max", d.getMaxDate());
      a.put("sequence", d.getSequenceNumber());
      a.put("keyId", d.getMasterKeyId());
    } else if (id instanceof AMRMTokenIdentifier) {
      a.put("owner", ((AMRMTokenIdentifier) id).getApplicationAttemptId().toString());
      a.put("keyId", ((AMRMTokenIdentifier) id).getKeyId());
    } else if (id instanceof NMTokenIdentifier) {
      NMTokenIdentifier n = (NMTokenIdentifier) id;
      ApplicationAttemptId attempt = n.getApplicationAttemptId();
      NodeId node = n.getNodeId();
      a.put("owner", n.getApplicationSubmitter());
      a.put("attempt", attempt.toString());
      a.put("node", node.toString());
      a.put("keyId", n.getKeyId());
    } else if (id instanceof ContainerTokenIdentifier) {
      ContainerTokenIdentifier c = (ContainerTokenIdentifier) id;
      a.put("owner", c.getApplicationSubmitter());
      a.put("container", c.getContainerID().toString());
      a.put("node", c.getNmHostAddress());
      a.put("resource", c.getResource().toString());
      a.put("max", c.getExpiryTimeStamp());
      a.put("issued", c.getCreationTime());
      a.put("keyId", c.getMasterKeyId());
      a.put("priority", c.getPriority().getPriority());
      a.put("rm", c.getRMIdentifier());
      a.put("type", c.getContainerType().toString());
      a.put("execution", c.getExecutionType().toString());
    } else if (id instanceof ClientToAMTokenIdentifier) {
      ClientToAMTokenIdentifier c = (ClientToAMTokenIdentifier) id;
      a.put("owner", c.getClientName());
      a.put("attempt", c.getApplicationAttemptID().toString());
    }
  }
}
