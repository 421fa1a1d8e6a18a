// SPDX-License-Identifier: Apache-2.0

package hrpc

import "encoding/binary"

// Under a Layer every packet travels inside SASL WRAP packets. Their joined contents are a stream of ordinary frames:
// one WRAP may contain several frames or a part of one.

// openWrapped decodes the SASL message of a packet and opens its token.
func openWrapped(rest []byte, l Layer) ([]byte, error) {
	var m saslMessage
	body, _, err := delimited(rest)
	if err == nil {
		err = m.decode(body)
	}
	if err != nil {
		return nil, err
	}
	if m.state != saslWrap {
		return nil, errSeal
	}
	return l.Open(m.token)
}

// cutFrame removes a frame from the front of joined contents.
func cutFrame(b []byte, limit int) (frame, rest []byte, ok bool, err error) {
	if len(b) < 4 {
		return nil, b, false, nil
	}
	size := int32(binary.BigEndian.Uint32(b))
	if size < 0 || int(size) > limit {
		return nil, b, false, errFrameSize
	}
	if len(b) < 4+int(size) {
		return nil, b, false, nil
	}
	return b[4 : 4+size], b[4+size:], true, nil
}

// sealedPacket opens a WRAP packet and serves the frames that it completes.
func (c *conn) sealedPacket(frame []byte) error {
	var h requestHeader
	rest, err := h.open(frame)
	if err == nil {
		err = c.openSealed(&h, rest)
	}
	if err != nil {
		return err
	}
	return c.serveInner()
}

// serveInner serves the complete frames in c.inner.
func (c *conn) serveInner() error {
	if len(c.inner) == 0 {
		return nil
	}
	plain := c.inner
	for {
		frame, rest, ok, err := cutFrame(plain, c.s.cfg.MaxFrame)
		if err != nil {
			return err
		}
		if !ok {
			c.keepInner(rest)
			return nil
		}
		plain = rest
		if err := c.plainPacket(frame); err != nil {
			return err
		}
	}
}

// openSealed appends the contents of a WRAP packet to c.inner.
func (c *conn) openSealed(h *requestHeader, rest []byte) error {
	if h.callID != idSasl {
		return h.fatalf(
			DetailFatalInvalidHeader,
			ClassRPCServer,
			"call id %d came outside of a SASL WRAP packet",
			h.callID,
		)
	}
	plain, err := openWrapped(rest, c.seal)
	if err != nil {
		return h.fatalf(DetailFatalUnauthorized, ClassSasl, "%v", err)
	}
	c.inner = growBuffer(c.inner, len(plain))
	if size := int64(cap(c.inner)); size > c.held {
		if !c.fr.shared.take(size - c.held) {
			return errOverBudget
		}
		c.held = size
	}
	c.inner = append(c.inner, plain...)
	return nil
}

// keepInner stores the rest of the joined contents; an empty rest uses no buffer.
func (c *conn) keepInner(rest []byte) {
	if len(rest) == 0 {
		c.dropInner()
		return
	}
	c.inner = c.inner[:copy(c.inner, rest)]
}

func (c *conn) dropInner() {
	putBuffer(c.inner)
	c.inner = nil
	c.fr.shared.give(c.held)
	c.held = 0
}

// nextSealed waits for the first frame inside WRAP packets, the connection context. Java clients may append more bytes
// to it, which remain in c.inner.
func (c *conn) nextSealed() ([]byte, error) {
	for {
		frame, rest, ok, err := cutFrame(c.inner, maxHandshakeFrame)
		if err != nil {
			return nil, err
		}
		if ok {
			frame = append([]byte(nil), frame...)
			c.keepInner(rest)
			return frame, nil
		}
		outer, err := c.fr.next(2 * maxHandshakeFrame)
		if err != nil {
			return nil, err
		}
		var h requestHeader
		body, err := h.open(outer)
		if err == nil {
			err = c.openSealed(&h, body)
		}
		if err != nil {
			return nil, err
		}
	}
}
