// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"net"
	"net/netip"
	"strconv"

	"github.com/creelrm/creel"
)

// maxNodes is about the number of addresses from 127.1.0.0 to 127.250.255.255; a few stay reserved.
const maxNodes = 1 << 20

// address is the address of a numbered node: 127.1.0.1 and following.
func address(number int) netip.Addr {
	n := uint32(127)<<24 | uint32(1)<<16 + uint32(number) + 1
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// listen opens the sockets of a farm and names its nodes.
func listen(cfg Config) ([]creel.NodeID, []net.Listener, error) {
	ids := make([]creel.NodeID, cfg.Nodes)
	if shared, err := listenLoopback(cfg, cfg.Port); err != nil {
		return nil, nil, err
	} else if shared != nil {
		port := int32(shared.Addr().(*net.TCPAddr).Port)
		for i := range ids {
			ids[i] = creel.NodeID{Host: address(cfg.First + i).String(), Port: port}
		}
		return ids, []net.Listener{loopbackOnly{shared}}, nil
	}
	var listeners []net.Listener
	for i := range ids {
		port := 0
		if cfg.Port != 0 {
			port = cfg.Port + i
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			for _, l := range listeners {
				l.Close()
			}
			return nil, nil, err
		}
		listeners = append(listeners, l)
		ids[i] = creel.NodeID{Host: "127.0.0.1", Port: int32(l.Addr().(*net.TCPAddr).Port)}
	}
	return ids, listeners, nil
}

// listenWeb opens the socket of the nodes' web servers, which all nodes share.
func listenWeb(cfg Config) (net.Listener, error) {
	port := int(cfg.HTTPPort)
	if shared, err := listenLoopback(cfg, port); err != nil || shared != nil {
		return loopbackOnly{shared}, err
	}
	return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// loopbackOnly closes connections to an address outside loopback. The socket is already bound to the loopback
// interface; this is a second check.
type loopbackOnly struct{ net.Listener }

func (l loopbackOnly) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if a, ok := c.LocalAddr().(*net.TCPAddr); ok && a.IP.IsLoopback() {
			return c, nil
		}
		c.Close()
	}
}
