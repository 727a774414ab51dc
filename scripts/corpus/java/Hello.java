public class Hello {
    public static void main(String[] args) throws Exception {
        long n = 0;
        for (int i = 0; i < 20_000_000; i++) n += i % 7;
        Thread.sleep(100);
        System.out.println(n);
    }
}
