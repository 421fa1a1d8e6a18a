// SPDX-License-Identifier: Apache-2.0

package hrpc_test

import (
	"context"
	"errors"
	"fmt"
	"net"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/creelrm/creel/internal/hrpc"
)

// A protocol of one method, served and called.
func Example() {
	greet := func(ctx context.Context, request proto.Message) (proto.Message, error) {
		name := request.(*wrapperspb.StringValue).Value
		if name == "" {
			return nil, hrpc.Errorf("org.example.NoNameException", "who are you?")
		}
		return wrapperspb.String("hello " + name + ", says " + hrpc.CallFrom(ctx).Identity.User), nil
	}
	server, err := hrpc.NewServer(hrpc.Config{
		Simple: true,
		Services: []hrpc.Service{{Protocol: "org.example.Greeter", Version: 1, Methods: map[string]hrpc.Method{
			"greet": {
				NewRequest: func() proto.Message { return new(wrapperspb.StringValue) },
				Serve:      greet,
				Inline:     true,
			},
		}}},
	})
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- server.Run(ctx, listener) }()

	client := hrpc.NewClient(hrpc.ClientConfig{})
	greeter := client.Peer(hrpc.Target{
		Address:  listener.Addr().String(),
		Protocol: "org.example.Greeter",
		Login:    hrpc.Login{User: "alice"},
	})
	var answer wrapperspb.StringValue
	fmt.Println(greeter.Call(ctx, "greet", wrapperspb.String("bob"), &answer), answer.Value)

	var remote *hrpc.RemoteError
	err = greeter.Call(ctx, "greet", wrapperspb.String(""), &answer)
	fmt.Println(errors.As(err, &remote), remote.Class)

	client.Close()
	stop()
	fmt.Println(<-stopped)
	// Output:
	// <nil> hello bob, says alice
	// true org.example.NoNameException
	// <nil>
}
