// SPDX-License-Identifier: Apache-2.0

import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.ipc.ProtobufRpcEngine2;
import org.apache.hadoop.ipc.RPC;
import org.apache.hadoop.thirdparty.protobuf.BlockingService;
import org.apache.hadoop.thirdparty.protobuf.ByteString;
import org.apache.hadoop.yarn.api.ApplicationClientProtocolPB;
import org.apache.hadoop.yarn.proto.ApplicationClientProtocol.ApplicationClientProtocolService;
import org.apache.hadoop.ipc.Server;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.proto.SecurityProtos;
import org.apache.hadoop.security.token.SecretManager;
import org.apache.hadoop.yarn.security.AMRMTokenIdentifier;

/**
 * Hadoop's own RPC server with nothing behind it: getDelegationToken echoes
 * the renewer of the request as the identifier of the token, and sends the
 * caller's user as its kind. It says "serving PORT" and lives until it is
 * killed. With a principal and a keytab it logs in by them. With a number of
 * bytes after these it answers so many zeros instead of the echo, and accepts
 * every AMRM token with the password "password".
 */
public class RpcServer {
  public static void main(String[] args) throws Exception {
    Configuration conf = new Configuration();
    if (args.length > 2) {
      UserGroupInformation.setConfiguration(conf);
      UserGroupInformation.loginUserFromKeytab(args[2], args[3]);
    }
    RPC.setProtocolEngine(conf, ApplicationClientProtocolPB.class, ProtobufRpcEngine2.class);
    byte[] answer = args.length > 4 ? new byte[Integer.parseInt(args[4])] : null;
    Object service = Proxy.newProxyInstance(RpcServer.class.getClassLoader(),
        new Class<?>[] {ApplicationClientProtocolService.BlockingInterface.class},
        (proxy, method, a) -> {
          if (!method.getName().equals("getDelegationToken")) {
            throw new UnsupportedOperationException(method.getName());
          }
          ByteString bytes = answer != null ? ByteString.copyFrom(answer)
              : ((SecurityProtos.GetDelegationTokenRequestProto) a[1]).getRenewerBytes();
          return SecurityProtos.GetDelegationTokenResponseProto.newBuilder()
              .setToken(SecurityProtos.TokenProto.newBuilder()
                  .setIdentifier(bytes).setPassword(ByteString.EMPTY).setService("")
                  .setKind(args.length > 2 ? Server.getRemoteUser().toString() : ""))
              .build();
        });
    BlockingService blocking = ApplicationClientProtocolService.newReflectiveBlockingService(
        (ApplicationClientProtocolService.BlockingInterface) service);
    RPC.Builder builder = new RPC.Builder(conf)
        .setProtocol(ApplicationClientProtocolPB.class)
        .setInstance(blocking)
        .setBindAddress("127.0.0.1")
        .setPort(Integer.parseInt(args[0]))
        .setNumHandlers(Integer.parseInt(args[1]))
        .setVerbose(false);
    if (answer != null) {
      builder.setSecretManager(new OnePassword());
    }
    RPC.Server server = builder.build();
    server.start();
    System.out.println("serving " + server.getPort());
    server.join();
  }
  private static final class OnePassword extends SecretManager<AMRMTokenIdentifier> {
    @Override
    protected byte[] createPassword(AMRMTokenIdentifier identifier) {
      return retrievePassword(identifier);
    }

    @Override
    public byte[] retrievePassword(AMRMTokenIdentifier identifier) {
      return "password".getBytes(StandardCharsets.US_ASCII);
    }

    @Override
    public AMRMTokenIdentifier createIdentifier() {
      return new AMRMTokenIdentifier();
    }
  }
}
