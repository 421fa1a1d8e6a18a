// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;
import org.apache.hadoop.yarn.client.cli.YarnCLI;
import org.apache.hadoop.yarn.conf.YarnConfiguration;

/**
 * Runs the yarn command's own classes one after another in one JVM. Each line
 * of standard input is a class of org.apache.hadoop.yarn.client.cli and its
 * arguments, separated by blanks; each is answered by one line of JSON with
 * what was printed and the exit code.
 */
public class CommandLines {
  public static void main(String[] args) throws Exception {
    PrintStream out = System.out;
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.trim().split(" +");
      ByteArrayOutputStream std = new ByteArrayOutputStream();
      ByteArrayOutputStream err = new ByteArrayOutputStream();
      PrintStream stdStream = new PrintStream(std, true, "UTF-8");
      PrintStream errStream = new PrintStream(err, true, "UTF-8");
      PrintStream oldErr = System.err;
      System.setOut(stdStream);
      System.setErr(errStream);
      int code;
      try {
        Tool tool = (Tool) Class.forName("org.apache.hadoop.yarn.client.cli." + words[0]).getDeclaredConstructor().newInstance();
        if (tool instanceof YarnCLI) {
          ((YarnCLI) tool).setSysOutPrintStream(stdStream);
          ((YarnCLI) tool).setSysErrPrintStream(errStream);
        }
        Configuration conf = new YarnConfiguration();
        code = ToolRunner.run(conf, tool, Arrays.copyOfRange(words, 1, words.length));
        if (tool instanceof YarnCLI) {
          ((YarnCLI) tool).stop();
        }
      } catch (Throwable e) {
        errStream.println(e);
        code = -1000;
      } finally {
        System.setOut(out);
        System.setErr(oldErr);
      }
      Map<String, Object> answer = new LinkedHashMap<>();
      answer.put("command", line);
      answer.put("code", code);
      answer.put("out", std.toString("UTF-8"));
      answer.put("err", err.toString("UTF-8"));
      out.println(new ObjectMapper().writeValueAsString(answer));
      out.flush();
    }
  }
}
