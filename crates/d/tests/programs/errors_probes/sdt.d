sdt:::
