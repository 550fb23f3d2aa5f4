// Package client speaks to a tranca server: `tranca serve` on a unix socket, or
// one on another host over HTTP.
//
//	c, err := client.New()
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	s, err := c.Create(ctx, tranca.CreateRequest{TTL: time.Hour})
//	if err != nil {
//		return err
//	}
//	defer s.Close(ctx)
//	res, err := s.Run(ctx, tranca.Request{Code: "print(6*7)"})
//
// A [Client] is a [tranca.Runner]: each [Client.Run] has a sandbox of its own.
// A [Sandbox] lives until it is closed or its time is over; runs in it find
// each other's files, and programs started in it outlive the call.
//
// What code may do is settled by the operator of the server. A request names
// one of his profiles and may only narrow it.
//
// # Errors
//
// Errors wrap the classes of package tranca, or are those of the context. A
// refusal is a [*tranca.RefusalError] by errors.As, and what the server said
// of an error is an [*Error]. A server that can't be reached, or whose
// connection broke, is [tranca.ErrUnavailable]; one that doesn't keep to the
// protocol is [tranca.ErrProtocol]. A program that fails is never an error.
//
// # Broken connections
//
// A call that changes nothing, or that says the same when it is repeated, is
// tried again, up to three times, where the connection broke before there was
// an answer. A creation and a run carry a key by which the server knows them
// again, so a repeated one is not done twice. [Process.Follow] and
// [tranca.Files.Read] go on at the byte where they were, and
// [tranca.Files.Write] does where what it reads is an [io.Seeker]. Whatever
// can't be repeated fails.
//
// # Concurrency
//
// All types are safe for concurrent use unless they say otherwise. Every call
// takes a context, and none blocks beyond its end but for the caller's own
// readers and writers. A stdin whose Read does not return is abandoned, not
// waited for.
package client
