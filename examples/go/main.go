// Command answer runs Python on this user's server: tranca serve.
package main

import "context"
import "os"
import "tranca"
import "tranca/client"

func main() {
	req := tranca.Request{Code: "import os; print('answer', 6*7, 'in', os.uname().nodename)", Stdout: os.Stdout}
	c, err := client.New()
	if err == nil {
		_, err = c.Run(context.Background(), req)
	}
	if err != nil {
		panic(err)
	}
}
